// Messages in protocol buffers' wire format.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace st_paragram {

// A field: its number, its wire type, and its value: an integer (type 0), or bytes (1: eight, 5: four, 2: any number).
struct Field {
    uint64_t number;
    int type;
    uint64_t integer;
    std::string_view bytes;
};

// Reads the fields of a message one after another; throws std::invalid_argument where protobuf would refuse the bytes,
// and at groups (types 3 and 4), which the messages read here do not have.
class Message {
public:
    explicit Message(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

    // The next field; false at the end.
    bool next(Field& field) {
        if (at_ == end_) return false;
        const uint64_t key = varint();
        field = {key >> 3, static_cast<int>(key & 7), 0, {}};
        if (key >> 32 || !field.number) damaged();
        switch (field.type) {
            case 0: field.integer = varint(); break;
            case 1: field.bytes = take(8); break;
            case 2: field.bytes = take(varint()); break;
            case 5: field.bytes = take(4); break;
            default: damaged();
        }
        return true;
    }

private:
    [[noreturn]] static void damaged() { throw std::invalid_argument("a damaged model file"); }

    // Seven bits a byte, lowest first; the top bit says that more follow.
    uint64_t varint() {
        uint64_t value = 0;
        for (int shift = 0; shift < 70; shift += 7) {
            if (at_ == end_) break;
            const auto byte = static_cast<unsigned char>(*at_++);
            if (shift == 63 && byte > 1) break;
            value |= static_cast<uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) return value;
        }
        damaged();
    }

    std::string_view take(uint64_t size) {
        if (size > static_cast<uint64_t>(end_ - at_)) damaged();
        const std::string_view bytes(at_, static_cast<size_t>(size));
        at_ += size;
        return bytes;
    }

    const char *at_, *const end_;
};

}  // namespace st_paragram
