// Normalizes a word and finds its pieces, by the search that sentencepiece calls EncodeOptimized, in integers.
#include "unigram.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace st_paragram {
namespace {

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
        const auto byte = static_cast<unsigned char>(*at);
        const bool plain = plain_[byte] && (at + 1 == end || static_cast<unsigned char>(at[1]) < 0x80);
        int64_t length = std::min<int64_t>(width_of(byte), end - at);
        const char* text = plain ? nullptr : longest(at, end, length);
        if (!text) {
            if (length == 1) result.push_back(*at);
            else result.append(at, static_cast<size_t>(length));
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

// Free units form a circular list through unit 0.
class PieceTrie::Builder {
public:
    Builder(PieceTrie& trie, const std::vector<Entry>& sorted) : trie_(trie), sorted_(sorted), next_{0}, last_{0} {
        trie_.units_.resize(1);
        add_block();
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
        const bool ends = sorted_[range.begin].text.size() == range.depth;
        if (ends) trie_.ends_[range.node] = sorted_[range.begin++].end;
        const auto byte = [&](size_t number) { return static_cast<unsigned char>(sorted_[number].text[range.depth]); };
        unsigned char bytes[256];
        int count = 0;
        const size_t first = stack_.size();
        for (size_t i = range.begin; i < range.end; ++count) {
            const size_t begin = i;
            bytes[count] = byte(i);
            while (i < range.end && byte(i) == bytes[count]) ++i;
            stack_.push_back({bytes[count], begin, i, range.depth + 1});
        }
        const uint32_t base = count ? place(bytes, count) : 0;
        trie_.units_[range.node].base = base << 1 | static_cast<uint32_t>(ends);
        for (size_t i = first; i < stack_.size(); ++i) {
            stack_[i].node ^= base;
            take(stack_[i].node);
            trie_.units_[stack_[i].node].parent = range.node;
        }
    }

    // Return a base from which the units for all these bytes are free.
    uint32_t place(const unsigned char* bytes, int count) {
        uint32_t unit = next_[0];
        for (int tries = 0; unit && tries < kMostTries; ++tries, unit = next_[unit]) {
            const uint32_t base = unit ^ bytes[0];
            const auto is_free = [&](unsigned char byte) { return (base ^ byte) && next_[base ^ byte] != kTaken; };
            if (std::all_of(bytes + 1, bytes + count, is_free)) return base;
        }
        const auto base = static_cast<uint32_t>(trie_.units_.size());
        add_block();
        return base;
    }

    // Append free units up to the next multiple of 256 to the list.
    void add_block() {
        const size_t size = trie_.units_.size(), wanted = (size / 256 + 1) * 256;
        if (wanted >= kTaken / 2) throw std::invalid_argument("very many pieces");
        trie_.units_.resize(wanted);
        trie_.ends_.resize(wanted);
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
    std::vector<uint32_t> next_, last_;
    std::vector<Range> stack_;
};

PieceTrie::PieceTrie(const std::vector<Entry>& entries) {
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
    const Builder builder(*this, sorted);
}

bool Unigram::segment(std::string_view word, Segmentation& result) const {
    charsmap_.normalize(word, result.normal);
    if (!search(result)) return false;
    collect(result);
    return true;
}

// The best path to the start of each character; ties go to the first path, which has the longest last piece. Scores are
// integer multiples of a step, so that sums are exact.
bool Unigram::search(Segmentation& result) const {
    const char* const bytes = result.normal.data();
    const auto size = static_cast<int32_t>(result.normal.size());
    result.best.assign(result.normal.size() + 1, {0, -1, -1});
    Segmentation::Best* const best = result.best.data();
    const auto offer = [&](int32_t from, int32_t to, int32_t score, int32_t id) {
        if (best[to].from < 0 || score > best[to].score) best[to] = {score, from, id};
    };
    int64_t lowest = 0;
    result.peak = 0;
    for (int32_t begin = 0; begin < size;) {
        const int32_t score = best[begin].score;
        const int32_t after = std::min(begin + width_of(static_cast<unsigned char>(bytes[begin])), size);
        lowest = std::min<int64_t>(lowest, score);
        result.peak = -lowest - unknown_score_;
        if (result.peak > kMostCost) return false;
        bool known = false;
        uint32_t node = 0;
        for (int32_t end = begin; end < size && trie_.step(node, static_cast<unsigned char>(bytes[end]));) {
            ++end;
            if (!trie_.ends(node)) continue;
            offer(begin, end, score + trie_.end(node).score, trie_.end(node).id);
            known |= end == after;
        }
        if (!known) offer(begin, after, score + unknown_score_, unknown_);
        begin = after;
    }
    result.cost = -static_cast<int64_t>(best[size].score);
    result.peak = std::max(result.peak, result.cost);
    return true;
}

// The ids on the best path to the end; a run of unknown characters becomes one id, or the ids of its bytes.
void Unigram::collect(Segmentation& result) const {
    std::vector<int32_t>& ids = result.ids;
    ids.clear();
    bool was_unknown = false;
    for (auto end = static_cast<int32_t>(result.normal.size()); end > 0;) {
        const Segmentation::Best& last = result.best[static_cast<size_t>(end)];
        const bool unknown = last.id == unknown_;
        if (unknown && !byte_ids_.empty()) {
            while (end > last.from) ids.push_back(byte_ids_[static_cast<unsigned char>(result.normal[--end])]);
        } else if (!unknown || !was_unknown) {
            ids.push_back(last.id);
        }
        was_unknown = unknown;
        end = last.from;
    }
    std::reverse(ids.begin(), ids.end());
}

}  // namespace st_paragram
