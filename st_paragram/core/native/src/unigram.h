// Sentencepiece's unigram models, applied to single words.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace st_paragram {

enum class Kind : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

// A piece in the file of a model.
struct Piece {
    uint32_t begin;
    uint16_t size;  // bytes
    Kind kind;
    float score;
    std::string_view text(std::string_view file) const { return file.substr(begin, size); }
};

constexpr int kScoreBits = 10;                            // scores are multiples of 2^-kScoreBits
constexpr std::string_view kMetaSymbol = "\xE2\x96\x81";  // stands for a space in sentencepiece
constexpr uint32_t kMetaCharacter = 0x2581;
constexpr uint32_t kCapitalSigma = 0x3A3;                 // its lower case depends on its neighbors

// Bytes of the character that begins with this byte, in valid UTF-8.
inline int width_of(unsigned char first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

bool is_utf8(std::string_view text);
std::string utf8(uint32_t character);

// Write the lower case of a UTF-8 text without capital sigma, as `str.lower` of the running Python does. Python's
// tables are read without the GIL, since they never change.
void lower_case(std::string_view text, std::string& result);

// Sentencepiece's normalization rules: UTF-8 strings and their replacements. A model holds them as a double array
// written by darts-clone. A unit at index i holds a byte (bits 0-7), whether a key ends here (8), and the offset to its
// children's base (10-30, times 256 if bit 9 is set): the child for byte b is the unit at i ^ offset ^ b if it holds b;
// the end of a key is the child for byte 0, whose unit (bit 31 set) is a position among the replacements.
class Charsmap {
public:
    Charsmap() = default;
    // Read and check a model's table. Throws std::invalid_argument if rules could look beyond a space or leave a meta
    // symbol in a text, or if some version of sentencepiece might refuse the table or read it differently.
    explicit Charsmap(std::string_view bytes);

    // Write the normal form of a word, in valid UTF-8. It and every word in it begin with a meta symbol; it is empty if
    // no character is left.
    void normalize(std::string_view word, std::string& result) const;

    // What the rules say about characters of the basic plane, as bits; `marks` also lists the first two of their keys.
    enum Mark : uint8_t { kReplaced = 1, kBegins = 2, kFollows = 4 };  // alone; as the first, the second of several
    std::vector<uint8_t> marks(std::vector<std::pair<uint32_t, uint32_t>>& pairs) const;

    // The replacement of the longest key at the start of a text, and the key's length; nullptr if there is no key.
    const char* longest(const char* begin, const char* end, int64_t& length) const;

private:
    static constexpr uint32_t kLeaf = 1u << 31;
    static uint32_t label(uint32_t unit) { return unit & (kLeaf | 0xFF); }
    static bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
    static uint32_t offset(uint32_t unit) { return unit >> 10 << (unit >> 6 & 8); }

    // Units by the base of their parent, 0: none: the first, and for each unit the next with the same base.
    struct Children { std::vector<uint32_t> first, next; };
    Children children() const;
    template <class Each>
    void each_character(const Children& children, uint32_t node, Each each, uint32_t code = 0, int missing = 0) const;
    void check_units() const;
    void check_keys() const;
    void check_replacement(uint32_t leaf) const;
    bool child(uint32_t& node, unsigned char byte) const;

    std::vector<uint32_t> units_;
    std::string replacements_;  // each followed by a zero byte
};

// The characters that occur in pieces, each as one or two letters, numbers from 1 to 255: the most frequent characters
// as one. No other character's letters begin with it. 0: another character.
class Alphabet {
public:
    Alphabet() = default;
    Alphabet(std::string_view file, const std::vector<Piece>& pieces);

    // The first letter of a character, plus 256 times its second letter.
    uint32_t letters(uint32_t character) const {
        if (character < letters_.size()) return letters_[character];
        const auto found = others_.find(character);
        return found == others_.end() ? 0 : found->second;
    }
    // The character whose letters begin here.
    uint32_t character(const char* letters) const {
        const auto first = static_cast<uint8_t>(letters[0]), second = static_cast<uint8_t>(letters[1]);
        return characters_[first <= singles_ ? first : singles_ + 255u * (first - singles_ - 1) + second];
    }
    const std::vector<uint32_t>& characters() const { return characters_; }  // from 1, frequent characters first

    // Append the letters of a text, and its characters with letter 0.
    void spell(std::string_view text, std::string& letters, std::vector<uint32_t>& others) const;

private:
    uint32_t singles_ = 0;           // characters of one letter
    std::vector<uint32_t> letters_;  // of the basic plane
    std::unordered_map<uint32_t, uint32_t> others_;
    std::vector<uint32_t> characters_;
};

// A trie without gaps: texts of letters, each with an id and a score.
class PieceTrie {
public:
    struct Entry {
        uint32_t begin;  // of its text among the letters, which ends with 0
        int32_t id, score;
    };

    // The children of a node follow each other from `first`: one for each bit of `children`, in their order, where bit
    // l % 32 stands for letter l; then the others with the same bits.
    struct Unit {
        uint32_t first = 0, children = 0;
        int32_t score = kNoText;
        uint8_t letter = 0;
        uint8_t next = 0;  // how many units later another child of the same bit is; 0: there is none
    };
    static constexpr int32_t kNoText = -(1 << 30);  // score where no text ends, below all sums of scores
    static constexpr uint32_t kNone = 0xFFFFFFFF;

    PieceTrie() = default;
    // The first entry, for letter 0, is the default of characters: others with its id count only for texts that have no
    // other score. Throws std::invalid_argument for texts that are there twice.
    PieceTrie(const std::string& letters, const std::vector<Entry>& entries);

    // The node after another node and a letter, or kNone. The node of a first letter has its number.
    uint32_t child(uint32_t node, uint8_t letter) const {
        const Unit& unit = units_[node];
        const uint32_t bit = 1u << letter % 32;
        if (!(unit.children & bit)) return kNone;
        uint32_t child = unit.first + count_bits(unit.children & (bit - 1));
        while (units_[child].letter != letter) {
            if (!units_[child].next) return kNone;
            child += units_[child].next;
        }
        return child;
    }
    int32_t score(uint32_t node) const { return units_[node].score; }
    int32_t id(uint32_t node) const { return ids_[node]; }

private:
    static uint32_t count_bits(uint32_t x) {
        x -= x >> 1 & 0x55555555;
        x = (x & 0x33333333) + (x >> 2 & 0x33333333);
        return ((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
    }
    struct Range { uint32_t node, begin, end; };  // texts in order that are equal up to the depth of their node
    void add_children(uint32_t node, Range* begin, Range* end);

    std::vector<Unit> units_;
    std::vector<int32_t> ids_;
};

// The memory that a thread needs to segment words, and the result for the last word.
struct Segmentation {
    struct Best {
        int64_t key;    // of the best path to here: its score, and ~ where its last piece begins in the lower half
        uint32_t node;  // of this piece
    };

    std::string cased, normal;
    std::string letters;               // of the normal form, then 0
    std::vector<uint32_t> characters;  // those with letter 0, in this order
    std::vector<Best> best;
    std::vector<int32_t> memory;
    int32_t* ids = nullptr;  // in `memory`
    int64_t count = 0;
    bool has_unknown = false;
    int64_t cost = 0;  // -1 times the score, in steps of 2^-kScoreBits
    int64_t peak = 0;  // the highest cost of any prefix of the word, followed by an unknown character
};

class Unigram {
public:
    // Read a ModelProto. Throws std::invalid_argument with a short reason if the model does not allow encoding word by
    // word (see st_paragram/core/tokenizers/sentencepiece.py), or if sentencepiece might refuse it.
    // With lower_case, str.lower is applied to words first; words have no capital sigma then. The file stays in memory.
    Unigram(std::string_view file, bool lower_case);

    // Find the pieces of a word, in UTF-8 without spaces, as sentencepiece does; kIdsBehind ids can be read after them.
    // False if its cost exceeds kMostCost at any point.
    bool segment(std::string_view word, Segmentation& result) const;

    static constexpr int64_t kMostCost = int64_t{1} << (14 + kScoreBits);
    static constexpr size_t kIdsBehind = 4;

    bool lower_case() const { return lower_case_; }

    int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
    int32_t unknown() const { return unknown_; }
    Kind kind(int32_t id) const { return pieces_[static_cast<size_t>(id)].kind; }
    std::string_view piece(int32_t id) const { return pieces_[static_cast<size_t>(id)].text(file_); }

private:
    // Letters, with bits that say which characters the normalization rules look at together: a rule may replace a
    // character with kBegins and a following one with kFollows if `pairs_` has their letters.
    static constexpr uint32_t kLetters = 0xFFFF, kBegins = 1u << 30, kFollows = 1u << 31;
    static size_t pair(uint32_t one, uint32_t next) { return ((one & kLetters) * 0x9E37u + (next & kLetters)) & 0xFFFF; }

    void prepare_characters();
    size_t spell(std::string_view word, Segmentation& result) const;
    size_t spell_by_rules(std::string_view word, Segmentation& result) const;
    bool search(Segmentation& result, size_t count) const;
    void collect(Segmentation& result, size_t count) const;

    std::string_view file_;
    std::vector<Piece> pieces_;
    bool lower_case_;
    int32_t unknown_ = -1, unknown_score_ = 0;
    std::vector<int32_t> byte_ids_;  // of 256 pieces, or none
    Charsmap charsmap_;
    std::bitset<1 << 16> pairs_;
    Alphabet alphabet_;
    PieceTrie trie_;
    std::vector<uint32_t> prepared_;  // the letters that a character becomes, and bits; 0: see spell_by_rules
};

}  // namespace st_paragram
