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

int width_at(const char* at) { return width_of(static_cast<unsigned char>(*at)); }

// The character that begins at `at`, and its number of bytes.
uint32_t character_at(const char* at, int width) {
    const auto first = static_cast<unsigned char>(*at);
    uint32_t code = width == 1 ? first : first & (0x7Fu >> width);
    for (int i = 1; i < width; ++i) code = code << 6 | (static_cast<unsigned char>(at[i]) & 0x3F);
    return code;
}

}  // namespace

std::string utf8(uint32_t character) {
    const int width = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    constexpr uint32_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    std::string text(1, static_cast<char>(kLead[width] | character >> 6 * (width - 1)));
    for (int rest = 6 * (width - 2); rest >= 0; rest -= 6) text += static_cast<char>(0x80 | (character >> rest & 0x3F));
    return text;
}

bool is_utf8(std::string_view text) {
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const auto continues = [](char byte) { return (byte & 0xC0) == 0x80; };
    for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
        const int width = width_at(at);
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
            result += utf8(Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(code)));
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

Alphabet::Alphabet(std::string_view file, const std::vector<Piece>& pieces) : letters_(kBasicPlane) {
    const auto count = [&](uint32_t character) -> uint32_t& {
        return character < kBasicPlane ? letters_[character] : others_[character];
    };
    for (const Piece& piece : pieces) {
        const char *at = file.data() + piece.begin, *const end = at + piece.size;
        for (; at < end; at += width_at(at)) ++count(character_at(at, width_at(at)));
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

void Alphabet::spell(std::string_view text, std::string& letters, std::vector<uint32_t>& others) const {
    for (const char *at = text.data(), *const end = at + text.size(); at < end; at += width_at(at)) {
        const uint32_t character = character_at(at, width_at(at));
        const uint32_t both = this->letters(character);
        letters.push_back(static_cast<char>(both));
        if (both >> 8) letters.push_back(static_cast<char>(both >> 8));
        if (!both) others.push_back(character);
    }
}

PieceTrie::PieceTrie(const std::string& letters, const std::vector<Entry>& entries) : units_(256), ids_(256, -1) {
    static constexpr size_t kStart = 8;  // letters
    struct Key {
        uint64_t start;   // the next letters, as a number with the same order
        uint32_t number;  // of an entry
    };
    const auto start = [&](size_t at) {
        uint64_t number = 0;
        for (size_t k = 0; k < kStart; ++k) number = number << 8 | (letters[at] ? letters[at++] & 0xFF : 0);
        return number;
    };
    std::vector<Key> keys;
    keys.reserve(entries.size());
    for (const Entry& entry : entries) keys.push_back({start(entry.begin), static_cast<uint32_t>(keys.size())});
    std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
        if (a.start != b.start) return a.start < b.start;
        const char *const one = &letters[entries[a.number].begin], *const other = &letters[entries[b.number].begin];
        const int compared = a.start & 0xFF ? std::strcmp(one + kStart, other + kStart) : 0;
        return compared != 0 ? compared < 0 : a.number < b.number;
    });
    std::vector<Entry> sorted(keys.size());  // read in order below, where each wait for memory would count
    for (size_t i = 0; i < keys.size(); ++i) sorted[i] = entries[keys[i].number];
    units_.reserve(units_.size() + letters.size());  // the rest is never touched
    ids_.reserve(units_.size() + letters.size());
    std::vector<Range> ranges{{0, 0, static_cast<uint32_t>(keys.size())}}, longer;
    for (size_t depth = 0; !ranges.empty(); ++depth) {  // shorter texts first, which are looked up often
        const size_t shift = 56 - 8 * (depth % kStart);
        const auto letter = [&](uint32_t i) { return static_cast<uint8_t>(keys[i].start >> shift); };
        const bool read = depth && depth % kStart == 0;
        for (auto [node, i, end] : ranges) {
            for (uint32_t k = i; read && k < end; ++k) keys[k].start = start(sorted[k].begin + depth);
            for (const uint32_t texts = i; i < end && !letter(i); ++i) {  // texts that end here
                const bool repeated = i > texts && sorted[i].id != sorted[0].id;
                if (repeated) throw std::invalid_argument("pieces that are there twice");
                if (units_[node].score > kNoText) continue;
                ids_[node] = sorted[i].id;
                units_[node].score = sorted[i].score;
            }
            const size_t first = longer.size();
            for (; i < end; ++i) {
                if (longer.size() == first || longer.back().node != letter(i)) longer.push_back({letter(i), i, i});
                longer.back().end = i + 1;
            }
            if (depth) add_children(node, longer.data() + first, longer.data() + longer.size());
        }
        ranges.swap(longer);
        longer.clear();
    }
}

// Add the children of a node, whose letters stand in place of their nodes.
void PieceTrie::add_children(uint32_t node, Range* begin, Range* end) {
    const auto first = static_cast<uint32_t>(units_.size());
    uint32_t bits = 0;
    for (const Range* child = begin; child < end; ++child) bits |= 1u << child->node % 32;
    units_[node].first = first;
    units_[node].children = bits;
    units_.resize(first + count_bits(bits));
    for (Range* child = begin; child < end; ++child) {
        const auto letter = static_cast<uint8_t>(child->node);
        child->node = first + count_bits(bits & ((1u << letter % 32) - 1));
        if (units_[child->node].letter) {
            while (units_[child->node].next) child->node += units_[child->node].next;
            units_[child->node].next = static_cast<uint8_t>(units_.size() - child->node);
            child->node = static_cast<uint32_t>(units_.size());
            units_.emplace_back();
        }
        units_[child->node].letter = letter;
    }
    ids_.resize(units_.size(), -1);
}

// Prepare the characters of the basic plane that become one character with letters.
void Unigram::prepare_characters() {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    const std::vector<uint8_t> marks = charsmap_.marks(pairs);
    prepared_.assign(kBasicPlane, 0);
    for (uint32_t code = 0; code < kBasicPlane; ++code) {
        uint32_t character = lower_case_ ? Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(code)) : code;
        if (character >= kBasicPlane || code == kCapitalDottedI) continue;
        const uint8_t mark = marks[character];
        if (mark & Charsmap::kReplaced) {
            const std::string key = utf8(character);
            int64_t length = 0;
            const std::string_view text = charsmap_.longest(key.data(), key.data() + key.size(), length);
            if (text.empty() || text == " " || text.size() > static_cast<size_t>(width_at(text.data()))) continue;
            character = character_at(text.data(), width_at(text.data()));
        }
        const uint32_t bits = (mark & Charsmap::kBegins ? kBegins : 0) | (mark & Charsmap::kFollows ? kFollows : 0);
        if (const uint32_t letters = alphabet_.letters(character)) prepared_[code] = letters | bits;
    }
    for (const auto& [first, second] : pairs) pairs_.set(pair(prepared_[first], prepared_[second]));
}

bool Unigram::segment(std::string_view word, Segmentation& result) const {
    const size_t count = spell(word, result);
    if (!search(result, count)) return false;
    collect(result, count);
    return true;
}

// Write the letters of a word's normal form; return their number.
size_t Unigram::spell(std::string_view word, Segmentation& result) const {
    result.letters.resize(std::max(result.letters.size(), 2 * word.size() + 4));  // two letters per character
    char* to = result.letters.data();
    uint32_t before = 0;
    const auto add = [&](uint32_t letters) {
        *to++ = static_cast<char>(letters);
        *to = static_cast<char>(letters >> 8);
        to += *to != 0;
    };
    add(alphabet_.letters(kMetaCharacter));
    for (const char *at = word.data(), *const end = at + word.size(); at < end;) {
        const int width = width_at(at);
        const uint32_t prepared = width > 3 ? 0 : prepared_[character_at(at, width)];
        const bool together = (before << 1 & prepared & kFollows) && pairs_[pair(before, prepared)];
        if (!(prepared & kLetters) || together) return spell_by_rules(word, result);
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
    result.letters.clear();
    result.characters.clear();
    alphabet_.spell(result.normal, result.letters, result.characters);
    return result.letters.size();  // a string ends with 0
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
        const auto* letter = reinterpret_cast<const uint8_t*>(result.letters.data()) + begin;
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
            const char* const letters = result.letters.data() + end;
            const std::string text = utf8(*letters ? alphabet_.character(letters) : result.characters[--others]);
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
