// Reading, checking and applying normalization rules.
#include "charsmap.h"

#include "model_file.h"
#include "utf8.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace st_paragram {
namespace {

constexpr size_t kLongestReplacement = 64;  // bytes; those of sentencepiece's own rules have 33 at most
constexpr int kLongestKey = 32;             // bytes; of keys that begin each other sentencepiece sees so many

void check(bool good, const char* reason = "a damaged table of normalization rules") {
    if (!good) throw std::invalid_argument(reason);
}

uint32_t read_number(const char* from) {
    const auto* byte = reinterpret_cast<const unsigned char*>(from);
    return byte[0] | byte[1] << 8 | byte[2] << 16 | static_cast<uint32_t>(byte[3]) << 24;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
    check(bytes.size() > 4, "no normalization rules");
    const size_t size = read_number(bytes.data());
    check(size >= 1024 && size % 1024 == 0 && size < bytes.size() - 4);
    units_.resize(size / 4);
    for (size_t i = 0; i < units_.size(); ++i) units_[i] = read_number(bytes.data() + 4 + 4 * i);
    replacements_ = bytes.substr(4 + size);
    check(replacements_.back() == '\0');
    check_units();
    check_rules();
    find_plain();
}

// As sentencepiece checks a table when it loads one (since 0.2.2): no child can be outside the units.
void Charsmap::check_units() const {
    const auto size = static_cast<uint32_t>(units_.size());
    const auto inside = [&](uint32_t base) { return (base | 0xFF) < size; };
    check(!label(units_[0]) && !has_leaf(units_[0]) && offset(units_[0]) && inside(offset(units_[0])));
    for (uint32_t i = 1; i < size; ++i) {
        const uint32_t unit = units_[i], base = i ^ offset(unit);
        if (unit & kLeaf) {
            check((unit & ~kLeaf) < replacements_.size());
        } else {
            check(inside(base) && (!has_leaf(unit) || units_[base] & kLeaf));
        }
    }
}

// Go through all keys, byte by byte: they must be UTF-8 without a space, and one of them must be the meta symbol.
// Keys share their ends as well as their beginnings, so a unit counts once for every length and state of a key. As no
// key is long, this comes to an end whatever the units are.
void Charsmap::check_rules() const {
    const size_t size = units_.size();
    std::vector<uint32_t> first(size, 0), next(size, 0);  // units by the base that they are children of; 0: none
    for (uint32_t i = 1; i < size; ++i) {
        if (units_[i] & kLeaf) continue;
        uint32_t& head = first[i ^ label(units_[i])];
        next[i] = head;
        head = i;
    }
    struct Place {
        uint32_t node;
        Utf8 state;
    };
    std::vector<uint8_t> reached(8 * size, 0);  // by the longest keys so far
    std::vector<Place> places{{0, Utf8::kWhole}}, longer;
    for (int length = 1; !places.empty(); ++length) {
        check(length <= kLongestKey + 1);
        for (const Place place : places) {
            for (uint32_t i = first[place.node ^ offset(units_[place.node])]; i; i = next[i]) {
                const auto byte = static_cast<unsigned char>(units_[i]);
                const Utf8 state = after(place.state, byte);
                check(byte && state != Utf8::kInvalid);
                check(byte != ' ', "normalization rules that reach across spaces");
                if (has_leaf(units_[i])) check_end(i ^ offset(units_[i]), state);
                uint8_t& mark = reached[8 * i + static_cast<size_t>(state)];
                if (mark != length) longer.push_back({i, state});
                mark = static_cast<uint8_t>(length);
            }
        }
        places.swap(longer);
        longer.clear();
    }
    int length = 0;
    const char *meta = kMetaSymbol.data(), *end = meta + kMetaSymbol.size();
    check(longest(meta, end, length) && length == 3, "normalization rules that leave the meta symbol in a text");
}

// What replaces a key: a whole string of the replacements, in UTF-8.
void Charsmap::check_end(uint32_t node, Utf8 state) const {
    const size_t begin = units_[node] & ~kLeaf;
    check(state == Utf8::kWhole && (begin == 0 || replacements_[begin - 1] == '\0'));
    const std::string_view text(replacements_.data() + begin);
    check(text.size() <= kLongestReplacement && is_utf8(text));
    check(text.find(kMetaSymbol) == text.npos, "normalization rules that put a meta symbol in a text");
}

bool Charsmap::child(uint32_t& node, unsigned char byte) const {
    node ^= offset(units_[node]) ^ byte;
    return label(units_[node]) == byte;
}

void Charsmap::find_plain() {
    for (int byte = 0; byte < 128; ++byte) {
        uint32_t node = 0;
        plain_[byte] = true;
        if (!child(node, static_cast<unsigned char>(byte))) continue;
        plain_[byte] = !has_leaf(units_[node]);
        for (int second = 0; second < 128; ++second) {
            uint32_t below = node;
            if (child(below, static_cast<unsigned char>(second))) plain_[byte] = false;
        }
    }
}

// What replaces the longest key that the text begins with, and its length; nullptr if there is none.
const char* Charsmap::longest(const char* at, const char* end, int& length) const {
    const char* found = nullptr;
    const char* const begin = at;
    for (uint32_t node = 0; at < end && child(node, static_cast<unsigned char>(*at)); ) {
        ++at;
        if (!has_leaf(units_[node])) continue;
        length = static_cast<int>(at - begin);
        found = replacements_.data() + (units_[node ^ offset(units_[node])] & ~kLeaf);
    }
    return found;
}

void Charsmap::normalize(std::string_view word, std::string& result) const {
    const size_t start = result.size();
    result += kMetaSymbol;
    bool after_space = true;
    const char *at = word.data(), *const end = at + word.size();
    while (at < end) {
        const auto byte = static_cast<unsigned char>(*at);
        if (plain_[byte] && (at + 1 == end || static_cast<unsigned char>(at[1]) < 0x80)) {
            result.push_back(*at++);
            after_space = false;
            continue;
        }
        int length = 0;
        const char* text = longest(at, end, length);
        if (!text) {
            length = static_cast<int>(std::min<int64_t>(width_of(byte), end - at));
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
    const auto ends_with_space = [&] {
        return result.size() - start >= kMetaSymbol.size() &&
               !result.compare(result.size() - kMetaSymbol.size(), kMetaSymbol.size(), kMetaSymbol);
    };
    while (ends_with_space()) result.resize(result.size() - kMetaSymbol.size());
}

}  // namespace st_paragram
