// Sentencepiece's unigram models, for words one by one.
#pragma once

#include "charsmap.h"
#include "growing_ids.h"
#include "model_file.h"
#include "piece_trie.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace st_paragram {

// What a thread needs to segment words, and what it has found of the last one.
struct Segmentation {
    struct Best {
        int32_t score;  // of the best way to here
        int32_t from;   // where its last piece begins; -1: none yet
        int32_t id;
    };

    std::string cased, normal;
    std::vector<Best> best;
    Ids ids;
    int64_t cost = 0;  // -1 times the score, in steps of 2^-kScoreBits
    int64_t peak = 0;  // the most that any beginning of the word costs, with an unknown character behind it
};

class Unigram {
public:
    // Read a model file. Throws std::invalid_argument, with a reason in a few words, if words cannot be encoded one by
    // one with it, or if sentencepiece might refuse it.
    explicit Unigram(std::string_view file);

    // Find the pieces of a word, in UTF-8 without spaces, as sentencepiece does. False if its cost is above kMostCost
    // somewhere.
    bool segment(std::string_view word, Segmentation& result) const;

    static constexpr int64_t kMostCost = int64_t{1} << (14 + kScoreBits);

    int32_t size() const { return static_cast<int32_t>(kinds_.size()); }
    int32_t unknown() const { return unknown_; }
    Kind kind(int32_t id) const { return kinds_[static_cast<size_t>(id)]; }
    std::string_view piece(int32_t id) const;
    int64_t bytes() const;

private:
    explicit Unigram(const ModelFile& file);

    std::vector<PieceTrie::Entry> read_pieces(const ModelFile& file);
    bool search(const std::string& text, Segmentation& result) const;
    void collect(const std::string& text, Segmentation& result) const;

    std::string texts_;  // of all pieces
    std::vector<uint32_t> starts_;
    std::vector<Kind> kinds_;
    int32_t unknown_ = -1, unknown_score_ = 0;
    std::vector<int32_t> byte_ids_;  // of 256 pieces, or none
    Charsmap charsmap_;
    PieceTrie trie_;
};

}  // namespace st_paragram
