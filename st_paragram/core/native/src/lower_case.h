// Lower case, as `str.lower` of the running Python has it.
#pragma once

#include "utf8.h"

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace st_paragram {

constexpr uint32_t kCapitalSigma = 0x3A3;    // its lower case depends on its neighbours: not for `lower_case`
constexpr uint32_t kCapitalDottedI = 0x130;  // the only character whose lower case is two

// Write the lower case of a text in UTF-8 that has no capital sigma. Python's tables are read without its lock: they
// never change.
inline void lower_case(std::string_view text, std::string& result) {
    result.clear();
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
        const auto byte = static_cast<unsigned char>(*at);
        if (byte < 0x80) {
            result.push_back(static_cast<char>(byte + (byte >= 'A' && byte <= 'Z' ? 'a' - 'A' : 0)));
            ++at;
            continue;
        }
        const uint32_t code = character_at(at, end);
        if (code == kCapitalDottedI) {
            result += "i\xCC\x87";
        } else {
            append_character(result, Py_UNICODE_TOLOWER(static_cast<Py_UCS4>(code)));
        }
        at += width_of(byte);
    }
}

}  // namespace st_paragram
