// Building a double-array trie.
#include "piece_trie.h"

#include <algorithm>
#include <stdexcept>

namespace st_paragram {
namespace {

constexpr int kMostTries = 32;  // places looked at for a node's children, before there is a new block for them

// The first bytes of a text as a number that sorts as they do; zeros behind its end.
uint64_t first_bytes(std::string_view text) {
    uint64_t key = 0;
    for (size_t i = 0; i < 8; ++i) key = key << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
    return key;
}

void sort_by_text(std::vector<PieceTrie::Entry>& entries) {
    struct Key {
        uint64_t start;
        uint32_t number;
    };
    std::vector<Key> keys(entries.size());
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = {first_bytes(entries[i].text), static_cast<uint32_t>(i)};
    std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
        return a.start != b.start ? a.start < b.start : entries[a.number].text < entries[b.number].text;
    });
    std::vector<PieceTrie::Entry> sorted(entries.size());
    for (size_t i = 0; i < keys.size(); ++i) sorted[i] = entries[keys[i].number];
    entries.swap(sorted);
}

void check_texts(const std::vector<PieceTrie::Entry>& sorted) {
    for (size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i].text.empty()) throw std::invalid_argument("an empty piece");
        if (i && sorted[i].text == sorted[i - 1].text) throw std::invalid_argument("pieces that are there twice");
    }
}

}  // namespace

// Free units are in a list, a ring through unit 0.
class PieceTrie::Builder {
public:
    Builder(PieceTrie& trie, const std::vector<Entry>& sorted) : trie_(trie), sorted_(sorted) {
        const size_t likely = 4 * sorted.size() + 512;  // units of a usual vocabulary
        trie_.units_.reserve(likely);
        trie_.ends_.reserve(likely);
        next_.reserve(likely);
        last_.reserve(likely);
        next_.push_back(0);
        last_.push_back(0);
        trie_.units_.resize(1);
        add_block();
        std::vector<Range> stack{{kRoot, 0, sorted.size(), 0}};
        while (!stack.empty()) {
            const Range range = stack.back();
            stack.pop_back();
            add_children(range, stack);
        }
        trie_.ends_.resize(trie_.units_.size());
    }

private:
    // Texts that are equal up to a depth, where their node is.
    struct Range {
        uint32_t node;
        size_t begin, end, depth;
    };

    void add_children(Range range, std::vector<Range>& stack) {
        const bool ends = sorted_[range.begin].text.size() == range.depth;
        if (ends) {
            if (trie_.ends_.size() <= range.node) trie_.ends_.resize(trie_.units_.size());
            trie_.ends_[range.node] = {sorted_[range.begin].id, sorted_[range.begin].score};
            ++range.begin;
        }
        unsigned char bytes[256];
        int count = 0;
        const size_t first = stack.size();
        for (size_t i = range.begin; i < range.end; ++count) {
            const size_t begin = i;
            bytes[count] = byte(i, range.depth);
            do ++i;
            while (i < range.end && byte(i, range.depth) == bytes[count]);
            stack.push_back({bytes[count], begin, i, range.depth + 1});
        }
        const uint32_t base = count ? place(bytes, count) : 0;
        trie_.units_[range.node].base = base << 1 | static_cast<uint32_t>(ends);
        for (size_t i = first; i < stack.size(); ++i) {
            stack[i].node ^= base;
            take(stack[i].node);
            trie_.units_[stack[i].node].parent = range.node;
        }
    }

    unsigned char byte(size_t number, size_t depth) const {
        return static_cast<unsigned char>(sorted_[number].text[depth]);
    }

    // A base from which the units for all these bytes are free.
    uint32_t place(const unsigned char* bytes, int count) {
        uint32_t unit = next_[0];
        for (int tries = 0; unit && tries < kMostTries; ++tries, unit = next_[unit]) {
            const uint32_t base = unit ^ bytes[0];
            int k = 1;
            while (k < count && is_free(base ^ bytes[k])) ++k;
            if (k == count) return base;
        }
        const auto base = static_cast<uint32_t>(trie_.units_.size());
        add_block();
        return base;
    }

    bool is_free(uint32_t unit) const { return unit && next_[unit] != kTaken; }

    // Free units up to the next multiple of 256, at the end of the list.
    void add_block() {
        const size_t size = trie_.units_.size(), wanted = (size / 256 + 1) * 256;
        if (wanted >= kTaken / 2) throw std::invalid_argument("very many pieces");
        trie_.units_.resize(wanted);
        next_.resize(wanted);
        last_.resize(wanted);
        for (auto unit = static_cast<uint32_t>(size); unit < wanted; ++unit) {
            const uint32_t before = last_[0];
            next_[before] = unit;
            last_[unit] = before;
            next_[unit] = 0;
            last_[0] = unit;
        }
    }

    void take(uint32_t unit) {
        next_[last_[unit]] = next_[unit];
        last_[next_[unit]] = last_[unit];
        next_[unit] = kTaken;
    }

    static constexpr uint32_t kTaken = 0xFFFFFFFF;

    PieceTrie& trie_;
    const std::vector<Entry>& sorted_;
    std::vector<uint32_t> next_, last_;
};

PieceTrie::PieceTrie(std::vector<Entry> entries) {
    sort_by_text(entries);
    check_texts(entries);
    entries.erase(std::remove_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.id < 0; }),
                  entries.end());
    if (entries.empty()) throw std::invalid_argument("no pieces");
    const Builder builder(*this, entries);
}

}  // namespace st_paragram
