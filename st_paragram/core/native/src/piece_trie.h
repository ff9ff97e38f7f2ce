// A double-array trie: texts, each with an id and a score, found byte by byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace st_paragram {

class PieceTrie {
public:
    struct Entry {
        std::string_view text;
        int32_t id;
        int32_t score;
    };

    static constexpr uint32_t kRoot = 0;

    // Throws std::invalid_argument if a text is empty or there twice. An entry with a negative id counts for that, and
    // is left out.
    explicit PieceTrie(std::vector<Entry> entries);

    // Go on from a node with a byte; false if no text goes on so.
    bool step(uint32_t& node, unsigned char byte) const {
        const uint32_t next = units_[node].base >> 1 ^ byte;
        if (units_[next].parent != node) return false;
        node = next;
        return true;
    }

    // Whether a text ends at a node; its id and score.
    bool ends(uint32_t node) const { return units_[node].base & 1; }
    int32_t id(uint32_t node) const { return ends_[node].id; }
    int32_t score(uint32_t node) const { return ends_[node].score; }

    int64_t bytes() const { return static_cast<int64_t>(units_.size() * (sizeof(Unit) + sizeof(End))); }

private:
    // The child for a byte is the unit at base ^ byte, if this is its parent: base times 2, plus 1 if a text ends here.
    // Whatever the base is, it leads to a unit: blocks of 256 are added as a whole.
    struct Unit {
        uint32_t base = 0;
        uint32_t parent = kNobody;
    };
    struct End {
        int32_t id = -1, score = 0;
    };
    static constexpr uint32_t kNobody = 0xFFFFFFFF;

    class Builder;

    std::vector<Unit> units_;
    std::vector<End> ends_;
};

}  // namespace st_paragram
