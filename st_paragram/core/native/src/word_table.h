// A hash table from words (UTF-8 bytes without a space) to their pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(_MSC_VER)
#include <intrin.h>
#define ST_PREFETCH(address) ((void)(address))
#else
#define ST_PREFETCH(address) __builtin_prefetch(address)
#endif

namespace st_paragram {

constexpr uint32_t kNeverCached = 0xFFFFFFFF;  // cost of a word whose texts must be encoded as a whole
constexpr int64_t kLongestWord = 64;           // bytes
constexpr uint32_t kMostPieces = 0x7FFF;
constexpr int64_t kMostBytes = int64_t{1} << 34;  // of a table: indices of records fit in 32 bits
constexpr int64_t kAtOnce = 4;   // ids are copied by so many at a time, also beyond the last one,
constexpr uint64_t kBehind = 4;  // so that numbers must follow the last record

// The index (0-7) of the lowest byte that is not zero; 8 if there is none.
inline int first_byte_set(uint64_t x) {
    if (!x) return 8;
#ifdef _MSC_VER
    unsigned long bit;
    _BitScanForward64(&bit, x);
    return static_cast<int>(bit >> 3);
#else
    return __builtin_ctzll(x) >> 3;
#endif
}

// Up to 8 bytes, the first in the lowest; the bytes after the end are spaces.
inline uint64_t load(const char* from, int64_t available) {
    uint64_t x = 0x2020202020202020u;
    if (available >= 8) {
        std::memcpy(&x, from, 8);
    } else {
        std::memcpy(&x, from, static_cast<size_t>(available));
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

struct Word {
    const char* bytes;
    int64_t length;
    uint64_t start;  // its first 8 bytes, zeros after its end
    uint64_t hash;
};

// The word that begins at `from`, which is before `end` and is not a space.
inline Word read_word(const char* from, const char* end) {
    Word word{from, 0, 0, 0};
    for (const char* at = from;; at += 8) {
        uint64_t x = load(at, end - at);
        const uint64_t y = x ^ 0x2020202020202020u;
        const int count = first_byte_set((y - 0x0101010101010101u) & ~y & 0x8080808080808080u);
        x &= count == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * count) - 1;
        if (count == 0) break;
        if (at == from) word.start = x;
        word.hash = (word.hash ^ x) * 0x9E3779B97F4A7C15u;
        word.hash ^= word.hash >> 32;
        word.length += count;
        if (count < 8) break;
    }
    word.hash = (word.hash ^ static_cast<uint64_t>(word.length)) * 0xD6E8FEB86659FD93u;
    word.hash ^= word.hash >> 32;
    return word;
}

// A record of a word's pieces: a header of two numbers, the pieces, the bytes of the word (at least 8, zero-padded).
struct Record {
    const uint32_t* at = nullptr;

    uint32_t length() const { return at[0] & 0xFFFF; }
    uint32_t pieces() const { return at[0] >> 16 & kMostPieces; }
    bool has_unknown() const { return at[0] >> 31; }
    uint32_t cost() const { return at[1]; }
    const int32_t* ids() const { return reinterpret_cast<const int32_t*>(at + 2); }
    const char* bytes() const { return reinterpret_cast<const char*>(at + 2 + pieces()); }

    // The size of the record, in numbers.
    uint64_t numbers() const { return numbers_of(length(), pieces()); }
    static uint64_t numbers_of(int64_t length, uint32_t pieces) {
        return 2 + pieces + (static_cast<uint64_t>(length > 8 ? length : 8) + 3) / 4;
    }

    bool is(const Word& word) const {
        if (length() != word.length) return false;
        if (word.length > 8) return std::memcmp(bytes(), word.bytes, static_cast<size_t>(word.length)) == 0;
        return load(bytes(), 8) == word.start;
    }
};

// Open addressing with linear probing, at most half full. A slot holds the upper half of a word's hash, which also says
// where its slot is, and the index of its record, plus 1; an empty slot is 0.
class WordTable {
public:
    // About `limit` bytes in total: a quarter for the slots, the rest for the records.
    explicit WordTable(int64_t limit)
        : most_words_(static_cast<uint64_t>(limit) / 64), most_numbers_(static_cast<uint64_t>(limit) / 16 * 3) {
        start_over();
    }

    int64_t words() const { return static_cast<int64_t>(words_); }
    int64_t bytes() const { return static_cast<int64_t>(slots_.capacity() * 8 + records_.capacity() * 4); }

    Record find(const Word& word) const {
        const uint64_t mask = slots_.size() - 1;
        for (uint64_t i = word.hash >> 32 & mask;; i = (i + 1) & mask) {
            const uint64_t slot = slots_[i];
            if (!slot) return {};
            if (slot >> 32 == word.hash >> 32) {
                const Record record{records_.data() + (slot & 0xFFFFFFFF) - 1};
                if (record.is(word)) return record;
            }
        }
    }

    // Prefetch the memory of a word before `find` is called: first its slot, then its record.
    void prefetch_slot(const Word& word) const { ST_PREFETCH(&slots_[word.hash >> 32 & (slots_.size() - 1)]); }
    void prefetch_record(const Word& word) const {
        const uint64_t slot = slots_[word.hash >> 32 & (slots_.size() - 1)];
        if (slot) ST_PREFETCH(records_.data() + (slot & 0xFFFFFFFF) - 1);
    }

    // Add a word that is not in the table; a full table is emptied first. If memory is missing, nothing changes.
    void add(const Word& word, const int32_t* ids, uint32_t count, bool has_unknown, uint32_t cost) {
        const uint64_t numbers = Record::numbers_of(word.length, count), text = numbers - 2 - count;
        uint32_t* record = append(word.hash, numbers);
        record[0] = static_cast<uint32_t>(word.length) | count << 16 | static_cast<uint32_t>(has_unknown) << 31;
        record[1] = cost;
        if (count) std::memcpy(record + 2, ids, 4 * count);
        record[numbers - 2] = record[numbers - 1] = 0;
        std::memcpy(record + numbers - text, word.bytes, static_cast<size_t>(word.length));
    }

    // Add the words of another table that are missing from this table.
    void add_all(const WordTable& other) {
        while (2 * (words_ + other.words_) > slots_.size() && words_ + other.words_ <= most_words_) grow();
        for (uint64_t at = 0; at < other.used_;) {
            const Record record{other.records_.data() + at};
            const Word word = read_word(record.bytes(), record.bytes() + record.length());
            const uint64_t numbers = record.numbers();
            if (!find(word).at) std::memcpy(append(word.hash, numbers), record.at, 4 * numbers);
            at += numbers;
        }
    }

    void start_over() {
        slots_.assign(1 << 10, 0);
        slots_.shrink_to_fit();
        records_.assign(1 << 10, 0);
        records_.shrink_to_fit();
        words_ = used_ = 0;
    }

private:
    static void put(std::vector<uint64_t>& slots, uint64_t hash, uint64_t place) {
        const uint64_t mask = slots.size() - 1;
        uint64_t i = hash >> 32 & mask;
        while (slots[i]) i = (i + 1) & mask;
        slots[i] = hash >> 32 << 32 | (place + 1);
    }

    // Space for the record of a word that is not in the table.
    uint32_t* append(uint64_t hash, uint64_t numbers) {
        if (words_ >= most_words_ || used_ + numbers > most_numbers_) start_over();
        make_room(used_ + numbers);
        if (2 * (words_ + 1) > slots_.size()) grow();
        put(slots_, hash, used_);
        uint32_t* const record = records_.data() + used_;
        used_ += numbers;
        ++words_;
        return record;
    }

    void make_room(uint64_t used) {
        if (used + kBehind <= records_.size()) return;
        const uint64_t wanted = std::max(used, std::min(2 * used, most_numbers_)) + kBehind;
        records_.reserve(wanted);  // resize alone might allocate more
        records_.resize(wanted);
    }

    void grow() {
        std::vector<uint64_t> slots(slots_.size() * 2, 0);
        for (const uint64_t slot : slots_) {
            if (slot) put(slots, slot, (slot & 0xFFFFFFFF) - 1);
        }
        slots_.swap(slots);
    }

    uint64_t most_words_, most_numbers_;
    uint64_t words_ = 0;
    uint64_t used_ = 0;  // numbers in records_
    std::vector<uint64_t> slots_;
    std::vector<uint32_t> records_;
};

}  // namespace st_paragram
