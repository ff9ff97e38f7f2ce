// Finding the pieces of a word: the search that sentencepiece calls EncodeOptimized, in whole numbers.
#include "unigram.h"

#include "utf8.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

namespace st_paragram {
namespace {

constexpr float kUnknownPenalty = 10;

int32_t steps(float score) { return static_cast<int32_t>(std::ldexp(score, kScoreBits)); }

// The number of a byte piece, which is written <0x00> .. <0xFF>; -1 if it is none.
int byte_of(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
    const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
    if (high == kDigits.npos || low == kDigits.npos) return -1;
    return static_cast<int>(16 * high + low);
}

}  // namespace

Unigram::Unigram(std::string_view file) : Unigram(read_model_file(file)) {}

Unigram::Unigram(const ModelFile& file) : charsmap_(file.charsmap), trie_(read_pieces(file)) {}

// Pieces that words are made of; the others are noted where they are needed.
std::vector<PieceTrie::Entry> Unigram::read_pieces(const ModelFile& file) {
    std::vector<PieceTrie::Entry> entries;
    std::set<std::string_view> others;
    float smallest = 0;
    if (file.byte_fallback) byte_ids_.assign(256, -1);
    entries.reserve(file.pieces.size());
    kinds_.reserve(file.pieces.size());
    starts_.reserve(file.pieces.size() + 1);
    for (const Piece& piece : file.pieces) {
        const int32_t id = size();
        starts_.push_back(static_cast<uint32_t>(texts_.size()));
        texts_ += piece.text;
        kinds_.push_back(piece.kind);
        if (piece.kind == Kind::kNormal || piece.kind == Kind::kUnused) {
            const bool used = piece.kind == Kind::kNormal;
            if (used) smallest = std::min(smallest, piece.score);
            entries.push_back({piece.text, used ? id : -1, used ? steps(piece.score) : 0});
            continue;
        }
        if (!others.insert(piece.text).second) throw std::invalid_argument("pieces that are there twice");
        if (piece.kind == Kind::kUnknown) unknown_ = id;
        if (piece.kind != Kind::kByte) continue;
        const int byte = byte_of(piece.text);
        if (byte < 0) throw std::invalid_argument("byte pieces of other names");
        byte_ids_[static_cast<size_t>(byte)] = id;
    }
    starts_.push_back(static_cast<uint32_t>(texts_.size()));
    unknown_score_ = steps(smallest - kUnknownPenalty);
    return entries;
}

std::string_view Unigram::piece(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    return std::string_view(texts_).substr(starts_[i], starts_[i + 1] - starts_[i]);
}

int64_t Unigram::bytes() const {
    return static_cast<int64_t>(texts_.size() + 4 * starts_.size() + kinds_.size()) + charsmap_.bytes() + trie_.bytes();
}

bool Unigram::segment(std::string_view word, Segmentation& result) const {
    result.normal.clear();
    result.peak = 0;
    charsmap_.normalize(word, result.normal);
    if (!search(result.normal, result)) return false;
    collect(result.normal, result);
    return true;
}

// The best way to each place where a character begins: of equal ones the first, which is that with the longest last
// piece. Scores are whole numbers of steps, so that sums are exact.
bool Unigram::search(const std::string& text, Segmentation& result) const {
    const auto size = static_cast<int32_t>(text.size());
    result.best.assign(text.size() + 1, {0, -1, -1});
    Segmentation::Best* const best = result.best.data();
    const char* const bytes = text.data();
    int64_t lowest = 0;
    const auto offer = [&](int32_t from, int32_t to, int32_t score, int32_t id) {
        if (best[to].from < 0 || score > best[to].score) best[to] = {score, from, id};
    };
    for (int32_t begin = 0; begin < size;) {
        const int32_t score = best[begin].score;
        const int32_t after = std::min(begin + width_of(static_cast<unsigned char>(bytes[begin])), size);
        lowest = std::min<int64_t>(lowest, score);
        result.peak = -lowest - unknown_score_;
        if (result.peak > kMostCost) return false;
        bool known = false;
        uint32_t node = PieceTrie::kRoot;
        for (int32_t end = begin; end < size && trie_.step(node, static_cast<unsigned char>(bytes[end]));) {
            ++end;
            if (!trie_.ends(node)) continue;
            offer(begin, end, score + trie_.score(node), trie_.id(node));
            known |= end == after;
        }
        if (!known) offer(begin, after, score + unknown_score_, unknown_);
        begin = after;
    }
    result.cost = -static_cast<int64_t>(best[size].score);
    result.peak = std::max(result.peak, result.cost);
    return true;
}

// The ids of the best way to the end: runs of unknown characters are one, or their bytes.
void Unigram::collect(const std::string& text, Segmentation& result) const {
    Ids& ids = result.ids;
    ids.size = 0;
    bool was_unknown = false;
    for (auto end = static_cast<int32_t>(text.size()); end > 0;) {
        const Segmentation::Best& last = result.best[static_cast<size_t>(end)];
        const bool unknown = last.id == unknown_;
        if (unknown && !byte_ids_.empty()) {
            while (end > last.from) ids.push(byte_ids_[static_cast<unsigned char>(text[static_cast<size_t>(--end)])]);
        } else if (!unknown || !was_unknown) {
            ids.push(last.id);
        }
        was_unknown = unknown;
        end = last.from;
    }
    std::reverse(ids.numbers.begin(), ids.numbers.begin() + ids.size);
}

}  // namespace st_paragram
