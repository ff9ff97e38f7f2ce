// Sentencepiece's normalization rules: a table of UTF-8 strings and what replaces them.
#pragma once

#include "utf8.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace st_paragram {

// The compiled table of a model, little-endian: bytes of the trie (uint32), its units (uint32 each), the replacements,
// each ended by a zero byte. The trie is a double array as darts-clone writes it. A unit at index i holds a byte (bits
// 0-7), whether a key ends here (8), and the offset to its children's base (10-30, times 256 if bit 9 is set): the child
// for byte b is the unit at i ^ offset ^ b if it holds b; the end of a key is the child for byte 0, whose unit (bit 31
// set) is a position among the replacements.
class Charsmap {
public:
    // Read and check a table. Throws std::invalid_argument if rules could see beyond a space or leave a meta symbol in
    // a text, or if any version of sentencepiece might refuse the table or read it in another way.
    explicit Charsmap(std::string_view bytes);

    // Append the normal form of a word, in valid UTF-8: begun by a meta symbol, as every word in it; nothing if no
    // character is left.
    void normalize(std::string_view word, std::string& result) const;

    int64_t bytes() const { return static_cast<int64_t>(units_.size() * 4 + replacements_.size()); }

private:
    static constexpr uint32_t kLeaf = 1u << 31;
    static uint32_t label(uint32_t unit) { return unit & (kLeaf | 0xFF); }
    static bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
    static uint32_t offset(uint32_t unit) { return unit >> 10 << (unit >> 6 & 8); }

    void check_units() const;
    void check_rules() const;
    void check_end(uint32_t node, Utf8 state) const;
    void find_plain();
    bool child(uint32_t& node, unsigned char byte) const;
    const char* longest(const char* at, const char* end, int& length) const;

    std::vector<uint32_t> units_;
    std::string replacements_;
    bool plain_[256] = {};  // ASCII characters that stay as they are unless one beyond ASCII follows
};

}  // namespace st_paragram
