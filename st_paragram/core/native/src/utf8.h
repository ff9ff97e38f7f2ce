// Characters in UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

namespace st_paragram {

// Bytes of the character that begins with this byte, in valid UTF-8.
inline int width_of(unsigned char first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

// What the bytes of a text so far ask for: so many more of a character, the next of which may have limits.
enum class Utf8 : uint8_t { kWhole, kOne, kTwo, kTwoFromA0, kTwoTo9F, kThree, kThreeFrom90, kThreeTo8F, kInvalid };

inline Utf8 after(Utf8 state, unsigned char byte) {
    if (state == Utf8::kWhole) {
        if (byte < 0x80) return Utf8::kWhole;
        if (byte < 0xC2 || byte > 0xF4) return Utf8::kInvalid;
        if (byte < 0xE0) return Utf8::kOne;
        if (byte < 0xF0) return byte == 0xE0 ? Utf8::kTwoFromA0 : byte == 0xED ? Utf8::kTwoTo9F : Utf8::kTwo;
        return byte == 0xF0 ? Utf8::kThreeFrom90 : byte == 0xF4 ? Utf8::kThreeTo8F : Utf8::kThree;
    }
    const bool high = state == Utf8::kTwoFromA0 ? byte >= 0xA0 : state != Utf8::kThreeFrom90 || byte >= 0x90;
    const bool low = state == Utf8::kTwoTo9F ? byte <= 0x9F : state != Utf8::kThreeTo8F || byte <= 0x8F;
    if ((byte & 0xC0) != 0x80 || !high || !low) return Utf8::kInvalid;
    return state == Utf8::kOne ? Utf8::kWhole : state <= Utf8::kTwoTo9F ? Utf8::kOne : Utf8::kTwo;
}

inline bool is_utf8(std::string_view text) {
    Utf8 state = Utf8::kWhole;
    for (const char byte : text) {
        state = after(state, static_cast<unsigned char>(byte));
        if (state == Utf8::kInvalid) return false;
    }
    return state == Utf8::kWhole;
}

// The character that begins at `at`, in valid UTF-8 with `end` behind it.
inline uint32_t character_at(const char* at, const char* end) {
    const auto first = static_cast<unsigned char>(*at);
    const int width = width_of(first);
    uint32_t code = width == 1 ? first : first & (0x7Fu >> width);
    for (const char* next = at + 1; next < end && next < at + width; ++next) {
        code = code << 6 | (static_cast<unsigned char>(*next) & 0x3F);
    }
    return code;
}

template <class String>
void append_character(String& text, uint32_t code) {
    const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
        return;
    }
    if (code < 0x800) {
        put(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            put(0xE0 | code >> 12);
        } else {
            put(0xF0 | code >> 18);
            put(0x80 | (code >> 12 & 0x3F));
        }
        put(0x80 | (code >> 6 & 0x3F));
    }
    put(0x80 | (code & 0x3F));
}

}  // namespace st_paragram
