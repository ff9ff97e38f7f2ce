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
constexpr int kMostTries = 32;               // places to try for a node's children before they get a new block
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
    characters_.assign(1, 0);
    for (const auto& [times, character] : order) {
        count(character) = size();
        characters_.push_back(character);
    }
}

// Free units form a circular list through unit 0.
class PieceTrie::Builder {
public:
    Builder(PieceTrie& trie, const std::vector<Entry>& sorted, const Alphabet& alphabet, End unknown)
        : trie_(trie), sorted_(sorted), alphabet_(alphabet), next_{0}, last_{0} {
        while (block_ < alphabet.size()) block_ *= 2;
        trie_.units_.resize(1);
        add_block();
        trie_.ids_[0] = unknown.id;
        trie_.units_[0].score = unknown.score;
        for (uint32_t letter = 1; letter < alphabet.size(); ++letter) {
            take(letter);
            trie_.ids_[letter] = unknown.id;
            trie_.units_[letter].score = unknown.score;
        }
        stack_.push_back({0, 0, sorted.size(), 0});
        while (!stack_.empty()) add_children();
    }

private:
    static constexpr uint32_t kTaken = 0xFFFFFFFF;

    // Texts that are equal up to the depth of their node.
    struct Range {
        uint32_t node;
        size_t begin, end, depth;
    };

    void add_children() {
        Range range = stack_.back();
        stack_.pop_back();
        if (range.begin < range.end && sorted_[range.begin].text.size() == range.depth) {
            const End& end = sorted_[range.begin++].end;
            trie_.ids_[range.node] = end.id;
            trie_.units_[range.node].score = end.score;
        }
        const size_t first = stack_.size();
        uint32_t children = 0;
        while (range.begin < range.end) {
            const char* const at = sorted_[range.begin].text.data() + range.depth;
            const int width = width_of(static_cast<unsigned char>(*at));
            const auto same = [&](const Entry& entry) {
                return std::memcmp(entry.text.data() + range.depth, at, static_cast<size_t>(width)) == 0;
            };
            size_t end = range.begin;
            while (end < range.end && same(sorted_[end])) ++end;
            const uint32_t letter = alphabet_.letter(character_at(at, width));
            children |= 1u << letter % 32;
            stack_.push_back({letter, range.begin, end, range.depth + static_cast<size_t>(width)});
            range.begin = end;
        }
        if (first == stack_.size()) return;
        const uint32_t base = range.node ? place(first) : 0;
        trie_.units_[range.node].base = base;
        trie_.units_[range.node].children = range.node ? children : 0;
        for (size_t i = first; i < stack_.size(); ++i) {
            stack_[i].node ^= base;
            if (range.node) take(stack_[i].node);
            trie_.units_[stack_[i].node].parent = range.node;
        }
    }

    // Return a base from which the units for the letters on the stack are free. A single letter fills the oldest gap.
    uint32_t place(size_t first) {
        const bool single = first + 1 == stack_.size();
        uint32_t unit = single ? next_[0] : last_[0];
        for (int tries = 0; unit && tries < kMostTries; ++tries, unit = last_[unit]) {
            const uint32_t base = unit ^ stack_[first].node;
            const auto is_free = [&](const Range& child) {
                return (base ^ child.node) && next_[base ^ child.node] != kTaken;
            };
            if (std::all_of(stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end(), is_free)) return base;
        }
        const auto base = static_cast<uint32_t>(trie_.units_.size());
        add_block();
        return base;
    }

    // Append free units up to the next multiple of the block's size to the list.
    void add_block() {
        const size_t size = trie_.units_.size(), wanted = (size / block_ + 1) * block_;
        if (wanted >= kTaken / 2) throw std::invalid_argument("very many pieces");
        trie_.units_.resize(wanted);
        trie_.ids_.resize(wanted, -1);
        next_.resize(wanted);
        last_.resize(wanted);
        for (auto unit = static_cast<uint32_t>(size); unit < wanted; ++unit) {
            next_[last_[0]] = unit;
            last_[unit] = std::exchange(last_[0], unit);
            next_[unit] = 0;
        }
    }

    void take(uint32_t unit) {
        next_[last_[unit]] = next_[unit];
        last_[next_[unit]] = last_[unit];
        next_[unit] = kTaken;
    }

    PieceTrie& trie_;
    const std::vector<Entry>& sorted_;
    const Alphabet& alphabet_;
    uint32_t block_ = 256;
    std::vector<uint32_t> next_, last_;
    std::vector<Range> stack_;
};

PieceTrie::PieceTrie(const std::vector<Entry>& entries, const Alphabet& alphabet, End unknown) {
    std::vector<std::pair<uint64_t, uint32_t>> order;  // the first bytes of a text, as a number with the same order
    order.reserve(entries.size());
    for (const Entry& entry : entries) {
        uint64_t start = 0;
        for (size_t i = 0; i < 8 && i < entry.text.size(); ++i) {
            start |= static_cast<uint64_t>(static_cast<unsigned char>(entry.text[i])) << (56 - 8 * i);
        }
        order.emplace_back(start, static_cast<uint32_t>(order.size()));
    }
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : entries[a.second].text < entries[b.second].text;
    });
    std::vector<Entry> sorted;
    sorted.reserve(entries.size());
    std::string_view before;
    for (const auto& [start, number] : order) {
        const Entry& entry = entries[number];
        if (entry.text == before) throw std::invalid_argument("pieces that are there twice");
        before = entry.text;
        if (entry.end.id >= 0) sorted.push_back(entry);
    }
    const Builder builder(*this, sorted, alphabet, unknown);
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
        if (const uint32_t letter = alphabet_.letter(character)) prepared_[code] = letter | begins | follows;
    }
}

bool Unigram::segment(std::string_view word, Segmentation& result) const {
    const int32_t count = spell(word, result);
    if (!search(result, count)) return false;
    collect(result, count);
    return true;
}

// Write the letters of a word's normal form; return their number.
int32_t Unigram::spell(std::string_view word, Segmentation& result) const {
    result.letters.resize(std::max(result.letters.size(), word.size() + 2));
    uint32_t *to = result.letters.data(), before = 0;
    *to++ = meta_letter_;
    for (const char *at = word.data(), *const end = at + word.size(); at < end;) {
        const int width = width_of(static_cast<unsigned char>(*at));
        if (width > 3) return spell_by_rules(word, result);
        const uint32_t prepared = prepared_[character_at(at, width)];
        const bool by_rules = before << 1 & prepared & kFollows;
        if (!(prepared & kLetter) || by_rules) return spell_by_rules(word, result);
        *to++ = prepared & kLetter;
        before = prepared;
        at += width;
    }
    *to = 0;
    return static_cast<int32_t>(to - result.letters.data());
}

// As `spell`, for words with unknown characters and all rules.
int32_t Unigram::spell_by_rules(std::string_view word, Segmentation& result) const {
    if (lower_case_) {
        st_paragram::lower_case(word, result.cased);
        word = result.cased;
    }
    charsmap_.normalize(word, result.normal);
    result.letters.resize(std::max(result.letters.size(), result.normal.size() + 1));
    result.characters.clear();
    uint32_t* to = result.letters.data();
    for (size_t at = 0; at < result.normal.size();) {
        const int width = width_of(static_cast<unsigned char>(result.normal[at]));
        const uint32_t character = character_at(result.normal.data() + at, width);
        *to = alphabet_.letter(character);
        if (!*to++) result.characters.push_back(character);
        at += static_cast<size_t>(width);
    }
    *to = 0;
    return static_cast<int32_t>(to - result.letters.data());
}

// The best path to the start of each character; ties go to the first path, which has the longest last piece. Scores are
// integer multiples of a step, so that sums are exact.
bool Unigram::search(Segmentation& result, int32_t count) const {
    const uint32_t* const letters = result.letters.data();
    const PieceTrie::Unit* const units = trie_.units();
    result.best.resize(std::max(result.best.size(), static_cast<size_t>(count) + 1));
    Segmentation::Best* const best = result.best.data();
    best[0].key = 0;
    for (int32_t i = 1; i <= count; ++i) best[i].key = INT64_MIN;
    int64_t lowest = 0;
    for (int32_t begin = 0; begin < count; ++begin) {
        const int64_t score = best[begin].key >> 32;
        lowest = std::min(lowest, score);
        if (-lowest - unknown_score_ > kMostCost) return false;
        uint32_t node = letters[begin];
        for (int32_t end = begin + 1;; ++end) {
            const PieceTrie::Unit& unit = units[node];
            const int64_t key = (score + unit.score) * (int64_t{1} << 32) | ~static_cast<uint32_t>(begin);
            const bool better = key > best[end].key;
            best[end].key = better ? key : best[end].key;
            best[end].node = better ? node : best[end].node;
            const uint32_t letter = letters[end], child = unit.base ^ letter;
            if (!(unit.children >> letter % 32 & 1) || units[child].parent != node) break;
            node = child;
        }
    }
    result.cost = -(best[count].key >> 32);
    result.peak = count ? std::max(-lowest - unknown_score_, result.cost) : 0;
    return true;
}

// The ids on the best path to the end; a run of unknown characters becomes one id, or the ids of its bytes.
void Unigram::collect(Segmentation& result, int32_t count) const {
    constexpr size_t kMostBytes = 4;
    result.memory.resize(std::max(result.memory.size(), kMostBytes * static_cast<size_t>(count) + kIdsBehind));
    int32_t *const behind = result.memory.data() + result.memory.size() - kIdsBehind, *to = behind;
    size_t others = result.characters.size();
    bool was_unknown = false;
    result.has_unknown = false;
    for (int32_t end = count; end > 0;) {
        const Segmentation::Best& last = result.best[static_cast<size_t>(end)];
        const int32_t id = trie_.id(last.node);
        const bool unknown = id == unknown_;
        if (unknown && !byte_ids_.empty()) {
            std::string text;
            append_character(text, last.node ? alphabet_.character(last.node) : result.characters[--others]);
            for (size_t i = text.size(); i > 0; --i) *--to = byte_ids_[static_cast<unsigned char>(text[i - 1])];
        } else if (!unknown || !was_unknown) {
            *--to = id;
        }
        result.has_unknown |= unknown && byte_ids_.empty();
        was_unknown = unknown;
        end = static_cast<int32_t>(~static_cast<uint32_t>(last.key));
    }
    result.ids = to;
    result.count = behind - to;
}

}  // namespace st_paragram
