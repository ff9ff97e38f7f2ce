// Sentencepiece's unigram models, applied to single words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace st_paragram {

enum class Kind : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

constexpr int kScoreBits = 10;                            // scores are multiples of 2^-kScoreBits
constexpr std::string_view kMetaSymbol = "\xE2\x96\x81";  // stands for a space in sentencepiece
constexpr uint32_t kCapitalSigma = 0x3A3;                 // its lower case depends on its neighbors

// Bytes of the character that begins with this byte, in valid UTF-8.
inline int width_of(unsigned char first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

bool is_utf8(std::string_view text);

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

private:
    static constexpr uint32_t kLeaf = 1u << 31;
    static uint32_t label(uint32_t unit) { return unit & (kLeaf | 0xFF); }
    static bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
    static uint32_t offset(uint32_t unit) { return unit >> 10 << (unit >> 6 & 8); }

    void check_units() const;
    void check_keys() const;
    void check_replacement(uint32_t leaf) const;
    bool child(uint32_t& node, unsigned char byte) const;
    const char* longest(const char* begin, const char* end, int64_t& length) const;

    std::vector<uint32_t> units_;
    std::string replacements_;  // each followed by a zero byte
    bool plain_[256] = {};      // ASCII characters that do not change unless a non-ASCII character follows
};

// A double-array trie: texts, each with an id and a score, found byte by byte.
class PieceTrie {
public:
    struct End {
        int32_t id = -1, score = 0;
    };
    struct Entry {
        std::string_view text;
        End end;
    };

    PieceTrie() = default;

    // Throws std::invalid_argument for repeated texts. An entry with a negative id is used only for this check.
    explicit PieceTrie(const std::vector<Entry>& entries);

    // Move from a node (initially 0) along a byte; false if no text continues with this byte.
    bool step(uint32_t& node, unsigned char byte) const {
        const uint32_t next = units_[node].base >> 1 ^ byte;
        if (units_[next].parent != node) return false;
        node = next;
        return true;
    }

    // Whether a text ends at a node, and which text.
    bool ends(uint32_t node) const { return units_[node].base & 1; }
    const End& end(uint32_t node) const { return ends_[node]; }

private:
    class Builder;

    // The child for a byte is the unit at base ^ byte, if this is its parent: base times 2, plus 1 if a text ends here.
    // Whatever the base is, it leads to a unit: blocks of 256 are added as a whole.
    struct Unit {
        uint32_t base = 0, parent = 0xFFFFFFFF;
    };

    std::vector<Unit> units_;
    std::vector<End> ends_;
};

// The memory that a thread needs to segment words, and the result for the last word.
struct Segmentation {
    struct Best {
        int32_t score;  // of the best path to here
        int32_t from;   // where its last piece begins; -1: no path yet
        int32_t id;
    };

    std::string normal;
    std::vector<Best> best;
    std::vector<int32_t> ids;
    int64_t cost = 0;  // -1 times the score, in steps of 2^-kScoreBits
    int64_t peak = 0;  // the highest cost of any prefix of the word, followed by an unknown character
};

class Unigram {
public:
    // Read a ModelProto. Throws std::invalid_argument with a short reason if the model does not allow encoding word by
    // word (see st_paragram/core/tokenizers/sentencepiece.py), or if sentencepiece might refuse it.
    explicit Unigram(std::string_view file);

    // Find the pieces of a word, in UTF-8 without spaces, as sentencepiece does. False if its cost exceeds kMostCost at
    // any point.
    bool segment(std::string_view word, Segmentation& result) const;

    static constexpr int64_t kMostCost = int64_t{1} << (14 + kScoreBits);

    int32_t size() const { return static_cast<int32_t>(kinds_.size()); }
    int32_t unknown() const { return unknown_; }
    Kind kind(int32_t id) const { return kinds_[static_cast<size_t>(id)]; }
    std::string_view piece(int32_t id) const {
        const auto i = static_cast<size_t>(id);
        return std::string_view(texts_).substr(starts_[i], starts_[i + 1] - starts_[i]);
    }

private:
    bool search(Segmentation& result) const;
    void collect(Segmentation& result) const;

    std::string texts_;  // of all pieces
    std::vector<uint32_t> starts_;
    std::vector<Kind> kinds_;
    int32_t unknown_ = -1, unknown_score_ = 0;
    std::vector<int32_t> byte_ids_;  // of 256 pieces, or none
    Charsmap charsmap_;
    PieceTrie trie_;
};

}  // namespace st_paragram
