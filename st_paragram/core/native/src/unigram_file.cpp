// Reads and checks a sentencepiece model. Anything unknown is refused, so that sentencepiece itself handles the model.
#include "unigram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace st_paragram {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;
constexpr size_t kLongestPiece = 4096;      // bytes; sentencepiece 0.2.3 refuses pieces of 8000
constexpr size_t kLongestReplacement = 64;  // bytes; sentencepiece's built-in rules have at most 33
constexpr int kLongestKey = 32;             // bytes; sentencepiece sees so many keys that are prefixes of each other
constexpr float kLeastScore = -4096, kUnknownPenalty = 10, kSteps = 1 << kScoreBits;
constexpr const char *kDamaged = "a damaged model file", *kDamagedRules = "a damaged table of normalization rules";

void refuse_if(bool condition, const char* reason) {
    if (condition) throw std::invalid_argument(reason);
}

uint32_t read_number(const char* from) {
    const auto* byte = reinterpret_cast<const unsigned char*>(from);
    return byte[0] | byte[1] << 8 | byte[2] << 16 | static_cast<uint32_t>(byte[3]) << 24;
}

// Seven bits per byte, lowest first; the top bit means that more bytes follow.
uint64_t take_varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70 && !bytes.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        if (shift == 63 && byte > 1) break;
        value |= static_cast<uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
    throw std::invalid_argument(kDamaged);
}

// A field of a protocol buffer message: an integer (wire type 0), or bytes (1: eight, 5: four, 2: any number).
struct Field {
    uint64_t number, integer;
    int type;
    std::string_view bytes;

    const Field& of_type(int wanted) const {
        refuse_if(type != wanted, kDamaged);
        return *this;
    }
    bool flag() const { return of_type(0).integer != 0; }
    std::string_view text() const { return of_type(2).bytes; }
    float real() const {
        const uint32_t bits = read_number(of_type(5).bytes.data());
        float value;
        std::memcpy(&value, &bits, 4);
        return value;
    }
};

// Call each(field) for each field of a message. Groups (types 3 and 4) are refused: these messages have none.
template <class Each>
void each_field(std::string_view bytes, Each each) {
    while (!bytes.empty()) {
        const uint64_t key = take_varint(bytes);
        Field field{key >> 3, 0, static_cast<int>(key & 7), {}};
        refuse_if(key >> 32 || !field.number || field.type == 3 || field.type == 4 || field.type > 5, kDamaged);
        if (field.type == 0) {
            field.integer = take_varint(bytes);
        } else {
            const uint64_t size = field.type == 1 ? 8 : field.type == 5 ? 4 : take_varint(bytes);
            refuse_if(size > bytes.size(), kDamaged);
            field.bytes = bytes.substr(0, size);
            bytes.remove_prefix(size);
        }
        each(field);
    }
}

Piece read_piece(std::string_view file, std::string_view bytes) {
    std::string_view text;
    Kind kind = Kind::kNormal;
    float score = 0;
    each_field(bytes, [&](const Field& field) {
        if (field.number == 1) text = field.text();
        if (field.number == 2) score = field.real();
        if (field.number != 3) return;
        refuse_if(field.of_type(0).integer < 1 || field.integer > 6, "pieces of an unknown type");
        kind = static_cast<Kind>(field.integer);
    });
    refuse_if(text.empty() || text.size() > kLongestPiece, "pieces that are empty or very long");
    return {static_cast<uint32_t>(text.data() - file.data()), static_cast<uint16_t>(text.size()), kind, score};
}

void check_piece(const Piece& piece, std::string_view text, std::string_view unknown) {
    refuse_if(text.find('\0') != text.npos || !is_utf8(text), "pieces that are not text");
    refuse_if(piece.kind == Kind::kUserDefined, "user-defined pieces");
    const bool matched = piece.kind == Kind::kNormal || piece.kind == Kind::kUnused;
    refuse_if(matched && text.find(kMetaSymbol, 1) != text.npos, "pieces of several words");
    refuse_if(!std::isfinite(piece.score), "scores that are not numbers");
    const bool is_whole = piece.score * kSteps == std::floor(piece.score * kSteps);
    const bool rounded = piece.score <= 0 && piece.score >= kLeastScore && is_whole;
    refuse_if(piece.kind == Kind::kNormal && !rounded, "scores that are not rounded");
    refuse_if((piece.kind == Kind::kUnknown) != (text == unknown), "an unknown piece of another name");
}

// The value of a byte piece, written as <0x00> .. <0xFF>.
size_t byte_of(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    refuse_if(text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>', "byte pieces of other names");
    const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
    refuse_if(high == kDigits.npos || low == kDigits.npos, "byte pieces of other names");
    return 16 * high + low;
}

// Views into the file.
struct Model {
    std::vector<Piece> pieces;
    std::string_view charsmap, unknown = "<unk>";
    bool byte_fallback = false;

    explicit Model(std::string_view file) {
        refuse_if(file.size() > kMostBytes, "a very large model file");
        int times[6] = {};
        each_field(file, [&](const Field& field) {
            refuse_if(field.number > 5, "a model file with other fields");
            refuse_if(field.number != 1 && times[field.number]++, "a model file with fields that are repeated");
            const std::string_view bytes = field.text();
            switch (field.number) {
                case 1: pieces.push_back(read_piece(file, bytes)); break;
                case 2: read_trainer(bytes); break;
                case 3: read_normalizer(bytes); break;
                case 4: refuse_if(!bytes.empty(), "a model file with tests of itself"); break;
                default: refuse_if(!bytes.empty(), "rules for decoding");
            }
        });
        int of_kind[7] = {}, spaces = 0;
        for (const Piece& piece : pieces) {
            const std::string_view text = piece.text(file);
            check_piece(piece, text, unknown);
            ++of_kind[static_cast<int>(piece.kind)];
            spaces += piece.kind == Kind::kNormal && text == kMetaSymbol;
        }
        refuse_if(!spaces, "no piece for the space");
        refuse_if(of_kind[static_cast<int>(Kind::kUnknown)] != 1, "not one unknown piece");
        refuse_if(of_kind[static_cast<int>(Kind::kByte)] != (byte_fallback ? 256 : 0), "another number of byte pieces");
    }

    void read_trainer(std::string_view bytes) {
        each_field(bytes, [&](const Field& field) {
            if (field.number == 3) refuse_if(field.of_type(0).integer != 1, "no unigram model");
            if (field.number == 24) refuse_if(field.flag(), "another treatment of spaces");
            if (field.number == 35) byte_fallback = field.flag();
            if (field.number == 45) unknown = field.text().empty() ? "<unk>" : field.bytes;
        });
    }

    // The dummy prefix, the removal of extra spaces and the meta symbol must not be switched off.
    void read_normalizer(std::string_view bytes) {
        each_field(bytes, [&](const Field& field) {
            if (field.number == 2) charsmap = field.text();
            if (field.number >= 3 && field.number <= 5) refuse_if(!field.flag(), "another treatment of spaces");
        });
    }
};

}  // namespace

Unigram::Unigram(std::string_view file, bool lower_case) : file_(file), lower_case_(lower_case) {
    Model model(file);
    charsmap_ = Charsmap(model.charsmap);
    pieces_ = std::move(model.pieces);
    float smallest = 0;
    if (model.byte_fallback) byte_ids_.assign(256, -1);
    for (int32_t id = 0; id < size(); ++id) {
        if (kind(id) == Kind::kNormal) smallest = std::min(smallest, pieces_[static_cast<size_t>(id)].score);
        if (kind(id) == Kind::kUnknown) unknown_ = id;
        if (kind(id) == Kind::kByte) byte_ids_[byte_of(piece(id))] = id;
    }
    const auto steps = [](float score) { return static_cast<int32_t>(score * kSteps); };
    unknown_score_ = steps(smallest - kUnknownPenalty);
    alphabet_ = Alphabet(file, pieces_);
    std::string letters;
    std::vector<PieceTrie::Entry> entries;
    entries.reserve(pieces_.size() + alphabet_.characters().size());
    std::vector<uint32_t> others;  // none: all characters of pieces have letters
    const auto add = [&](std::string_view text, int32_t id, int32_t score) {
        entries.push_back({static_cast<uint32_t>(letters.size()), id, score});
        alphabet_.spell(text, letters, others);
        letters.push_back('\0');
    };
    add("", unknown_, unknown_score_);
    for (int32_t id = 0; id < size(); ++id) {
        const bool used = kind(id) == Kind::kNormal;
        add(piece(id), used ? id : -1, used ? steps(pieces_[static_cast<size_t>(id)].score) : PieceTrie::kNoText);
    }
    const std::vector<uint32_t>& characters = alphabet_.characters();
    for (size_t i = 1; i < characters.size(); ++i) add(utf8(characters[i]), unknown_, unknown_score_);
    trie_ = PieceTrie(letters, entries);
    prepare_characters();
}

Charsmap::Charsmap(std::string_view bytes) {
    refuse_if(bytes.size() <= 4, "no normalization rules");
    const size_t size = read_number(bytes.data());
    refuse_if(size < 1024 || size % 1024 || size >= bytes.size() - 4, kDamagedRules);
    units_.resize(size / 4);
    for (size_t i = 0; i < units_.size(); ++i) units_[i] = read_number(bytes.data() + 4 + 4 * i);
    replacements_ = bytes.substr(4 + size);
    refuse_if(replacements_.back() != '\0', kDamagedRules);
    check_units();
    check_keys();
    int64_t length = 0;
    longest(kMetaSymbol.data(), kMetaSymbol.data() + 3, length);
    refuse_if(length != 3, "normalization rules that leave the meta symbol in a text");
}

Charsmap::Children Charsmap::children() const {
    Children result{std::vector<uint32_t>(units_.size(), 0), std::vector<uint32_t>(units_.size(), 0)};
    for (uint32_t i = 1; i < units_.size(); ++i) {
        if (units_[i] & kLeaf) continue;
        uint32_t& head = result.first[i ^ label(units_[i])];
        result.next[i] = head;
        head = i;
    }
    return result;
}

// Call each(node, character) for each character that keys have after a node.
template <class Each>
void Charsmap::each_character(const Children& children, uint32_t node, Each each, uint32_t code, int missing) const {
    for (uint32_t i = children.first[node ^ offset(units_[node])]; i; i = children.next[i]) {
        const auto byte = static_cast<unsigned char>(units_[i]);
        const int rest = missing ? missing - 1 : width_of(byte) - 1;
        const uint32_t bits = missing ? byte & 0x3F : rest ? byte & (0x3Fu >> rest) : byte;
        if (rest) each_character(children, i, each, code << 6 | bits, rest);
        else each(i, code << 6 | bits);
    }
}

std::vector<uint8_t> Charsmap::marks(std::vector<std::pair<uint32_t, uint32_t>>& pairs) const {
    std::vector<uint8_t> result(1 << 16);
    const Children children = this->children();
    each_character(children, 0, [&](uint32_t node, uint32_t first) {
        if (first >= result.size()) return;
        if (has_leaf(units_[node])) result[first] |= kReplaced;
        each_character(children, node, [&](uint32_t, uint32_t second) {
            result[first] |= kBegins;
            if (second >= result.size()) return;
            result[second] |= kFollows;
            pairs.emplace_back(first, second);
        });
    });
    return result;
}

// The check that sentencepiece makes when it loads a table (since 0.2.2): no child is outside the units.
void Charsmap::check_units() const {
    const auto size = static_cast<uint32_t>(units_.size());
    const auto inside = [&](uint32_t base) { return (base | 0xFF) < size; };
    const bool root = !label(units_[0]) && !has_leaf(units_[0]) && offset(units_[0]) && inside(offset(units_[0]));
    refuse_if(!root, kDamagedRules);
    for (uint32_t i = 1; i < size; ++i) {
        const uint32_t unit = units_[i], base = i ^ offset(unit);
        const bool good = unit & kLeaf ? (unit & ~kLeaf) < replacements_.size()
                                       : inside(base) && (!has_leaf(unit) || units_[base] & kLeaf);
        refuse_if(!good, kDamagedRules);
    }
}

// Visit all keys, byte by byte: they must be whole characters without a space. Keys share endings as well as
// beginnings, so a unit is visited once for each key length and each number of bytes that the last character still
// needs. Since keys are short, the visit ends for any units.
void Charsmap::check_keys() const {
    struct Place {
        uint32_t node;
        int missing;
    };
    const size_t size = units_.size();
    const Children children = this->children();
    std::vector<uint8_t> reached(4 * size, 0);  // by the longest keys so far
    std::vector<Place> places{{0, 0}}, longer;
    for (int length = 1; !places.empty(); ++length) {
        refuse_if(length > kLongestKey + 1, kDamagedRules);
        for (const Place place : places) {
            for (uint32_t i = children.first[place.node ^ offset(units_[place.node])]; i; i = children.next[i]) {
                const auto byte = static_cast<unsigned char>(units_[i]);
                const bool continues = (byte & 0xC0) == 0x80;
                refuse_if(!byte || continues != (place.missing > 0), kDamagedRules);
                refuse_if(byte == ' ', "normalization rules that reach across spaces");
                const int missing = continues ? place.missing - 1 : width_of(byte) - 1;
                refuse_if(has_leaf(units_[i]) && missing, kDamagedRules);
                if (has_leaf(units_[i])) check_replacement(i ^ offset(units_[i]));
                uint8_t& mark = reached[4 * i + static_cast<size_t>(missing)];
                if (mark != length) longer.push_back({i, missing});
                mark = static_cast<uint8_t>(length);
            }
        }
        places.swap(longer);
        longer.clear();
    }
}

// The replacement of a key: a whole string among the replacements, in UTF-8.
void Charsmap::check_replacement(uint32_t leaf) const {
    const size_t begin = units_[leaf] & ~kLeaf;
    const std::string_view text(replacements_.data() + begin);
    const bool whole = begin == 0 || replacements_[begin - 1] == '\0';
    refuse_if(!whole || text.size() > kLongestReplacement || !is_utf8(text), kDamagedRules);
    refuse_if(text.find(kMetaSymbol) != text.npos, "normalization rules that put a meta symbol in a text");
}

}  // namespace st_paragram
