// Normalizes a word and finds its pieces, by the search that sentencepiece calls EncodeOptimized, in integers.
#include "unigram.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace st_paragram {
namespace {

constexpr uint32_t kBasicPlane = 1 << 16;    // characters
constexpr uint32_t kCapitalDottedI = 0x130;  // the only character with two lower-case characters

// The character that begins at `at`, and its number of bytes.
uint32_t character_at(const char* at, int width) {
    const auto first = static_cast<unsigned char>(*at);
    uint32_t code = width == 1 ? first : first & (0x7Fu >> width);
    for (int i = 1; i < width; ++i) code = code << 6 | (static_cast<unsigned char>(at[i]) & 0x3F);
    return code;
}

void append_character(std::string& text, uint32_t code) {
    const int width = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    constexpr uint32_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    text.push_back(static_cast<char>(kLead[width] | code >> 6 * (width - 1)));
    for (int rest = width - 2; rest >= 0; --rest) text.push_back(static_cast<char>(0x80 | (code >> 6 * rest & 0x3F)));
}

}  // namespace

bool is_utf8(std::string_view text) {
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const auto continues = [](char byte) { return (byte & 0xC0) == 0x80; };
    for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
        const int width = width_of(static_cast<unsigned char>(*at));
        if (continues(*at) || (*at & 0xF8) == 0xF8 || end - at < width) return false;
        const uint32_t code = character_at(at, width);
        if (code < kSmallest[width] || code > 0x10FFFF || code >> 11 == 0x1B) return false;
        if (!std::all_of(at + 1, at + width, continues)) return false;
        at += width;
    }
    return true;
}

void lower_case(std::string_view text, std::string& result) {
    result.clear();
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
        const auto byte = static_cast<unsigned char>(*at);
        const int width = width_of(byte);
        if (byte < 0x80) {
            result.push_back(static_cast<char>(byte + (byte >= 'A' && byte <= 'Z' ? 'a' - 'A' : 0)));
        } else if (const uint32_t code = character_at(at, width); code == kCapitalDottedI) {
            result += "i\xCC\x87";
        } else {
            append_character(result, Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(code)));
        }
        at += width;
    }
}

bool Charsmap::child(uint32_t& node, unsigned char byte) const {
    const uint32_t next = node ^ offset(units_[node]) ^ byte;
    if (label(units_[next]) != byte) return false;
    node = next;
    return true;
}

// The replacement of the longest key at the start of the text, and the key's length; nullptr if there is no key.
const char* Charsmap::longest(const char* begin, const char* end, int64_t& length) const {
    const char* found = nullptr;
    uint32_t node = 0;
    for (const char* at = begin; at < end && child(node, static_cast<unsigned char>(*at));) {
        ++at;
        if (!has_leaf(units_[node])) continue;
        length = at - begin;
        found = replacements_.data() + (units_[node ^ offset(units_[node])] & ~kLeaf);
    }
    return found;
}

void Charsmap::normalize(std::string_view word, std::string& result) const {
    result = kMetaSymbol;
    bool after_space = true;
    for (const char *at = word.data(), *const end = at + word.size(); at < end;) {
        int64_t length = std::min<int64_t>(width_of(static_cast<unsigned char>(*at)), end - at);
        const char* text = longest(at, end, length);
        if (!text) {
            result.append(at, static_cast<size_t>(length));
            after_space = false;
        } else {
            while (after_space && *text == ' ') ++text;
            if (*text) after_space = text[std::strlen(text) - 1] == ' ';
            for (; *text; ++text) {
                if (*text == ' ') result += kMetaSymbol;
                else result.push_back(*text);
            }
        }
        at += length;
    }
    for (size_t meta = kMetaSymbol.size(); result.size() >= meta;) {
        if (result.compare(result.size() - meta, meta, kMetaSymbol)) break;
        result.resize(result.size() - meta);
    }
}

const char* Charsmap::replacement(uint32_t character) const {
    std::string key;
    append_character(key, character);
    int64_t length = 0;
    return longest(key.data(), key.data() + key.size(), length);
}

Alphabet::Alphabet(const std::vector<std::string_view>& texts) : letters_(kBasicPlane) {
    const auto count = [&](uint32_t character) -> uint32_t& {
        return character < kBasicPlane ? letters_[character] : others_[character];
    };
    for (const std::string_view text : texts) {
        for (size_t at = 0; at < text.size();) {
            const int width = width_of(static_cast<unsigned char>(text[at]));
            ++count(character_at(text.data() + at, width));
            at += static_cast<size_t>(width);
        }
    }
    std::vector<std::pair<uint32_t, uint32_t>> order;  // by how often a character does not occur, then by character
    for (uint32_t character = 0; character < kBasicPlane; ++character) {
        if (letters_[character]) order.emplace_back(~letters_[character], character);
    }
    for (const auto& [character, times] : others_) order.emplace_back(~times, character);
    std::sort(order.begin(), order.end());
    const size_t most = 255;
    size_t pairs = 0;  // first letters of two
    while (most - pairs + most * pairs < order.size()) ++pairs;
    if (pairs > most) throw std::invalid_argument("pieces with very many characters");
    singles_ = static_cast<uint32_t>(most - pairs);
    characters_.assign(1, 0);
    for (const auto& [times, character] : order) {
        const auto number = static_cast<uint32_t>(characters_.size()), rest = number - singles_ - 1;
        count(character) = number <= singles_ ? number : (singles_ + 1 + rest / 255) | (rest % 255 + 1) << 8;
        characters_.push_back(character);
    }
}

std::string Alphabet::spelled(std::string_view text) const {
    std::string result;
    for (size_t at = 0; at < text.size();) {
        const int width = width_of(static_cast<unsigned char>(text[at]));
        const uint32_t letters = this->letters(character_at(text.data() + at, width));
        result.push_back(static_cast<char>(letters));
        if (letters >> 8) result.push_back(static_cast<char>(letters >> 8));
        at += static_cast<size_t>(width);
    }
    return result;
}

std::vector<std::string> Alphabet::spelled_characters() const {
    std::vector<std::string> result;
    for (size_t number = 1; number < characters_.size(); ++number) {
        const uint32_t letters = this->letters(characters_[number]);
        result.emplace_back(1, static_cast<char>(letters));
        if (letters >> 8) result.back().push_back(static_cast<char>(letters >> 8));
    }
    return result;
}

// Texts that are equal up to the depth of their node.
struct PieceTrie::Range {
    uint32_t node;
    size_t begin, end, depth;
};

PieceTrie::PieceTrie(const std::vector<Entry>& sorted, End unknown) {
    units_.resize(256);
    ids_.resize(256, -1);
    set_end(0, unknown);
    std::vector<Range> ranges{{0, 0, sorted.size(), 0}};
    std::vector<uint8_t> letters;
    for (size_t i = 0; i < ranges.size(); ++i) {  // shorter texts first, which are looked up often
        Range range = ranges[i];
        const auto letter = [&](size_t text) { return static_cast<uint8_t>(sorted[text].text[range.depth]); };
        if (range.depth && sorted[range.begin].text.size() == range.depth) {
            set_end(range.node, sorted[range.begin++].end);
        }
        letters.clear();
        const size_t first = ranges.size();
        while (range.begin < range.end) {
            const size_t begin = range.begin;
            letters.push_back(letter(begin));
            while (range.begin < range.end && letter(range.begin) == letters.back()) ++range.begin;
            ranges.push_back({letters.back(), begin, range.begin, range.depth + 1});
        }
        if (!range.depth) continue;
        add_children(range.node, letters);
        for (size_t k = first; k < ranges.size(); ++k) ranges[k].node = child(range.node, letters[k - first]);
    }
}

void PieceTrie::add_children(uint32_t node, const std::vector<uint8_t>& letters) {
    const auto first = static_cast<uint32_t>(units_.size());
    units_[node].first = first;
    for (const uint8_t letter : letters) units_[node].children |= 1u << letter % 32;
    const uint32_t bits = units_[node].children;
    units_.resize(first + count_bits(bits));
    for (const uint8_t letter : letters) {
        uint32_t unit = first + count_bits(bits & ((1u << letter % 32) - 1));
        if (units_[unit].letter) {
            while (units_[unit].next) unit += units_[unit].next;
            units_[unit].next = static_cast<uint8_t>(units_.size() - unit);
            unit = static_cast<uint32_t>(units_.size());
            units_.emplace_back();
        }
        units_[unit].letter = letter;
    }
    ids_.resize(units_.size(), -1);
}

// Throws std::invalid_argument for repeated texts. A piece with a negative id is used only for this check. Characters
// that are no piece are unknown.
void Unigram::build_trie(std::vector<PieceTrie::Entry> pieces) {
    std::vector<std::string_view> texts;
    for (const PieceTrie::Entry& piece : pieces) texts.push_back(piece.text);
    alphabet_ = Alphabet(texts);
    std::vector<std::string> spelled;
    spelled.reserve(pieces.size());
    for (const std::string_view text : texts) spelled.push_back(alphabet_.spelled(text));
    std::vector<std::string> characters = alphabet_.spelled_characters();
    const PieceTrie::End unknown{unknown_, unknown_score_};
    std::vector<std::pair<uint64_t, uint32_t>> order;  // the first bytes of a text, as a number with the same order
    order.reserve(pieces.size() + characters.size());
    for (std::string& character : characters) {
        spelled.push_back(std::move(character));
        pieces.push_back({"", unknown});
    }
    for (const std::string& text : spelled) {
        uint64_t start = 0;
        for (size_t i = 0; i < 8 && i < text.size(); ++i) {
            start |= static_cast<uint64_t>(static_cast<unsigned char>(text[i])) << (56 - 8 * i);
        }
        order.emplace_back(start, static_cast<uint32_t>(order.size()));
    }
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        if (a.first != b.first) return a.first < b.first;
        const int compared = spelled[a.second].compare(spelled[b.second]);
        return compared != 0 ? compared < 0 : a.second < b.second;
    });
    std::vector<PieceTrie::Entry> sorted;
    sorted.reserve(order.size());
    std::string_view before;
    for (const auto& [start, number] : order) {
        const bool repeated = spelled[number] == before;
        if (repeated && number < texts.size()) throw std::invalid_argument("pieces that are there twice");
        before = spelled[number];
        const PieceTrie::End end = pieces[number].end;
        const bool is_piece = repeated && !sorted.empty() && sorted.back().text == before;
        if (end.id >= 0 && !is_piece) sorted.push_back({before, end});
    }
    trie_ = PieceTrie(sorted, unknown);
    meta_letters_ = alphabet_.letters(kMetaCharacter);
}

// Prepare the characters of the basic plane that become one letter.
void Unigram::prepare_characters() {
    const std::vector<uint8_t> marks = charsmap_.marks();
    prepared_.assign(kBasicPlane, 0);
    for (uint32_t code = 0; code < kBasicPlane; ++code) {
        uint32_t character = code;
        if (lower_case_) character = Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(code));
        if (character >= kBasicPlane || code == kCapitalSigma || code == kCapitalDottedI) continue;
        const uint8_t mark = marks[character];
        if (mark & Charsmap::kReplaced) {
            const std::string_view text = charsmap_.replacement(character);
            const bool one = !text.empty() && static_cast<size_t>(width_of(static_cast<unsigned char>(text[0]))) == text.size();
            if (!one || text == " ") continue;
            character = character_at(text.data(), static_cast<int>(text.size()));
        }
        const uint32_t begins = mark & Charsmap::kBegins ? kBegins : 0, follows = mark & Charsmap::kFollows ? kFollows : 0;
        if (const uint32_t letters = alphabet_.letters(character)) prepared_[code] = letters | begins | follows;
    }
}

bool Unigram::segment(std::string_view word, Segmentation& result) const {
    const size_t count = spell(word, result);
    if (!search(result, count)) return false;
    collect(result, count);
    return true;
}

// Write the letters of a word's normal form; return their number.
size_t Unigram::spell(std::string_view word, Segmentation& result) const {
    result.letters.resize(std::max(result.letters.size(), word.size() + kMetaSymbol.size() + 2));
    uint8_t* to = result.letters.data();
    uint32_t before = 0;
    const auto add = [&](uint32_t letters) {
        *to++ = static_cast<uint8_t>(letters);
        *to = static_cast<uint8_t>(letters >> 8);
        to += *to != 0;
    };
    add(meta_letters_);
    for (const char *at = word.data(), *const end = at + word.size(); at < end;) {
        const int width = width_of(static_cast<unsigned char>(*at));
        const uint32_t prepared = width > 3 ? 0 : prepared_[character_at(at, width)];
        if (!(prepared & kLetters) || (before << 1 & prepared & kFollows)) return spell_by_rules(word, result);
        add(prepared & kLetters);
        before = prepared;
        at += width;
    }
    *to = 0;
    return static_cast<size_t>(to - result.letters.data());
}

// As `spell`, for words with other characters and for all rules.
size_t Unigram::spell_by_rules(std::string_view word, Segmentation& result) const {
    if (lower_case_) {
        st_paragram::lower_case(word, result.cased);
        word = result.cased;
    }
    charsmap_.normalize(word, result.normal);
    result.letters.resize(std::max(result.letters.size(), result.normal.size() + 1));
    result.characters.clear();
    uint8_t* to = result.letters.data();
    for (size_t at = 0; at < result.normal.size();) {
        const int width = width_of(static_cast<unsigned char>(result.normal[at]));
        const uint32_t character = character_at(result.normal.data() + at, width);
        const uint32_t letters = alphabet_.letters(character);
        if (!letters) result.characters.push_back(character);
        *to++ = static_cast<uint8_t>(letters);
        if (letters >> 8) *to++ = static_cast<uint8_t>(letters >> 8);
        at += static_cast<size_t>(width);
    }
    *to = 0;
    return static_cast<size_t>(to - result.letters.data());
}

// The best path to the start of each character; ties go to the first path, which has the longest last piece. Scores are
// integer multiples of a step, so that sums are exact.
bool Unigram::search(Segmentation& result, size_t count) const {
    result.best.resize(std::max(result.best.size(), count + 1));
    Segmentation::Best* const best = result.best.data();
    best[0].key = 0;
    for (size_t i = 1; i <= count; ++i) best[i].key = INT64_MIN;
    int64_t lowest = 0;
    for (size_t begin = 0; begin < count; ++begin) {
        const int64_t score = best[begin].key >> 32;
        if (score < PieceTrie::kNoText / 2) continue;  // within a character
        lowest = std::min(lowest, score);
        if (-lowest - unknown_score_ > kMostCost) return false;
        const uint8_t* letter = result.letters.data() + begin;
        uint32_t node = *letter;
        for (Segmentation::Best* end = best + begin + 1; node != PieceTrie::kNone; ++end) {
            const int64_t key = (score + trie_.score(node)) * (int64_t{1} << 32) | ~static_cast<uint32_t>(begin);
            const bool better = key > end->key;
            end->key = better ? key : end->key;
            end->node = better ? node : end->node;
            node = trie_.child(node, *++letter);
        }
    }
    result.cost = -(best[count].key >> 32);
    result.peak = count ? std::max(-lowest - unknown_score_, result.cost) : 0;
    return true;
}

// The ids on the best path to the end; a run of unknown characters becomes one id, or the ids of its bytes.
void Unigram::collect(Segmentation& result, size_t count) const {
    constexpr size_t kMostBytes = 4;
    result.memory.resize(std::max(result.memory.size(), kMostBytes * count + kIdsBehind));
    int32_t *const behind = result.memory.data() + result.memory.size() - kIdsBehind, *to = behind;
    size_t others = result.characters.size();
    bool was_unknown = false;
    result.has_unknown = false;
    for (size_t end = count; end > 0;) {
        const Segmentation::Best& last = result.best[end];
        end = ~static_cast<uint32_t>(last.key);
        const int32_t id = trie_.id(last.node);
        const bool unknown = id == unknown_;
        if (unknown && !byte_ids_.empty()) {
            const uint8_t* const letters = result.letters.data() + end;
            std::string text;
            append_character(text, *letters ? alphabet_.character(letters) : result.characters[--others]);
            for (size_t i = text.size(); i > 0; --i) *--to = byte_ids_[static_cast<unsigned char>(text[i - 1])];
        } else if (!unknown || !was_unknown) {
            *--to = id;
        }
        result.has_unknown |= unknown && byte_ids_.empty();
        was_unknown = unknown;
    }
    result.ids = to;
    result.count = behind - to;
}

}  // namespace st_paragram
