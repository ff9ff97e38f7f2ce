// Reading and checking a model file. Whatever is not understood is refused: sentencepiece itself is to judge then.
#include "model_file.h"

#include "utf8.h"
#include "wire_format.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace st_paragram {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;
constexpr size_t kUsualPiece = 20;       // bytes in the file
constexpr size_t kLongestPiece = 4096;  // bytes; sentencepiece 0.2.3 refuses pieces of 8000

void refuse_if(bool condition, const char* reason) {
    if (condition) throw std::invalid_argument(reason);
}

void check_type(const Field& field, int type) { refuse_if(field.type != type, "a damaged model file"); }

bool flag(const Field& field) {
    check_type(field, 0);
    return field.integer != 0;
}

std::string_view text(const Field& field) {
    check_type(field, 2);
    return field.bytes;
}

float number(const Field& field) {
    check_type(field, 5);
    uint32_t bits = 0;
    for (int i = 3; i >= 0; --i) bits = bits << 8 | static_cast<unsigned char>(field.bytes[static_cast<size_t>(i)]);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

Piece read_piece(std::string_view bytes) {
    Piece piece;
    Message message(bytes);
    for (Field field; message.next(field);) {
        switch (field.number) {
            case 1: piece.text = text(field); break;
            case 2: piece.score = number(field); break;
            case 3:
                check_type(field, 0);
                refuse_if(field.integer < 1 || field.integer > 6, "pieces of an unknown type");
                piece.kind = static_cast<Kind>(field.integer);
                break;
            default: break;
        }
    }
    return piece;
}

void read_trainer(std::string_view bytes, ModelFile& model, bool& suffix, uint64_t& type) {
    Message message(bytes);
    for (Field field; message.next(field);) {
        switch (field.number) {
            case 3:
                check_type(field, 0);
                type = field.integer;
                break;
            case 24: suffix = flag(field); break;
            case 35: model.byte_fallback = flag(field); break;
            case 45: model.unknown_piece = text(field).empty() ? "<unk>" : text(field); break;
            default: break;
        }
    }
}

void read_normalizer(std::string_view bytes, std::string_view& charsmap, bool& usual) {
    bool dummy_prefix = true, remove_extra = true, escape = true;
    Message message(bytes);
    for (Field field; message.next(field);) {
        switch (field.number) {
            case 2: charsmap = text(field); break;
            case 3: dummy_prefix = flag(field); break;
            case 4: remove_extra = flag(field); break;
            case 5: escape = flag(field); break;
            default: break;
        }
    }
    usual = dummy_prefix && remove_extra && escape;
}

bool matched(const Piece& piece) { return piece.kind == Kind::kNormal || piece.kind == Kind::kUnused; }

void check_score(const Piece& piece) {
    refuse_if(!std::isfinite(piece.score), "scores that are not numbers");
    if (piece.kind != Kind::kNormal) return;
    const float steps = std::ldexp(piece.score, kScoreBits);
    const bool good = piece.score <= 0 && piece.score >= -kMostScore && steps == std::floor(steps);
    refuse_if(!good, "scores that are not rounded");
}

void check_pieces(const ModelFile& model) {
    bool has_space = false;
    int unknown = 0, bytes = 0;
    for (const Piece& piece : model.pieces) {
        refuse_if(piece.text.empty() || piece.text.size() > kLongestPiece, "pieces that are empty or very long");
        refuse_if(piece.text.find('\0') != piece.text.npos || !is_utf8(piece.text), "pieces that are not text");
        refuse_if(piece.kind == Kind::kUserDefined, "user-defined pieces");
        refuse_if(matched(piece) && piece.text.find(kMetaSymbol, 1) != piece.text.npos, "pieces of several words");
        check_score(piece);
        has_space |= piece.kind == Kind::kNormal && piece.text == kMetaSymbol;
        bytes += piece.kind == Kind::kByte;
        if (piece.kind == Kind::kUnknown) {
            ++unknown;
            refuse_if(piece.text != model.unknown_piece, "another name of the unknown piece");
        }
        refuse_if(piece.kind != Kind::kUnknown && piece.text == model.unknown_piece, "another unknown piece");
    }
    refuse_if(!has_space, "no piece for the space");
    refuse_if(unknown != 1, "not one unknown piece");
    refuse_if(bytes != (model.byte_fallback ? 256 : 0), "another number of byte pieces");
}

}  // namespace

ModelFile read_model_file(std::string_view bytes) {
    ModelFile model;
    std::string_view decoding;
    bool usual = true, ignored = true, suffix = false;
    uint64_t type = 1;
    refuse_if(bytes.size() > kMostBytes, "a very large model file");
    Message message(bytes);
    model.pieces.reserve(bytes.size() / kUsualPiece);
    int once[6] = {};
    for (Field field; message.next(field);) {
        refuse_if(field.number > 5, "a model file with other fields");
        check_type(field, 2);
        refuse_if(field.number != 1 && once[field.number]++, "a model file with fields that are repeated");
        switch (field.number) {
            case 1: model.pieces.push_back(read_piece(field.bytes)); break;
            case 2: read_trainer(field.bytes, model, suffix, type); break;
            case 3: read_normalizer(field.bytes, model.charsmap, usual); break;
            case 5: read_normalizer(field.bytes, decoding, ignored); break;
            default: refuse_if(!field.bytes.empty(), "a model file with tests of itself");
        }
    }
    refuse_if(type != 1, "no unigram model");
    refuse_if(suffix || !usual, "another treatment of spaces");
    refuse_if(!decoding.empty(), "rules for decoding");
    check_pieces(model);
    return model;
}

}  // namespace st_paragram
