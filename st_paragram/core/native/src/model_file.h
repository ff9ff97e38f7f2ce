// What a sentencepiece model file says, as far as it decides about the ids of a word.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace st_paragram {

enum class Kind : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Piece {
    std::string_view text;
    float score = 0;
    Kind kind = Kind::kNormal;
};

// Views into the bytes that were read, which must outlive this.
struct ModelFile {
    std::vector<Piece> pieces;
    std::string_view charsmap;
    std::string_view unknown_piece = "<unk>";
    bool byte_fallback = false;
};

// Scores are multiples of 2^-kScoreBits, and no smaller than -kMostScore.
constexpr int kScoreBits = 10;
constexpr float kMostScore = 4096;
constexpr std::string_view kMetaSymbol = "\xE2\x96\x81";  // what sentencepiece writes for a space

// Read a ModelProto. Throws std::invalid_argument, with a reason in a few words, if words of a text cannot be encoded
// one by one (st_paragram/core/tokenizers/word_cache.py says when), or if any version of sentencepiece might refuse it.
ModelFile read_model_file(std::string_view bytes);

}  // namespace st_paragram
