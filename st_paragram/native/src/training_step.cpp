// A training step on the rows it touches: catch up, embed, loss, gradients, Adam. The reference is plain torch:
// st_paragram/training/row_lazy_adam.py, modules/mean_pool.py and losses/margin_hard_negative.py.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace st_paragram {
namespace {

constexpr int kColumns = 4;  // s, t, negative of s, negative of t
constexpr int64_t kRowGrain = 16, kSentenceGrain = 8, kPairGrain = 4;

// Two points with the moments 0 .. 3 of what a row has to move: see _gauss_rule in row_lazy_adam.py.
SleptMove gauss_rule(const double* moves, int64_t stride, double epsilon) {
    const double sum = moves[0];
    const double total = std::max(sum, std::numeric_limits<double>::min());
    const double first = moves[stride] / total, second = moves[2 * stride] / total, third = moves[3 * stride] / total;
    const double variance = second - first * first;
    const double spread = variance > 1e-4 * first * first ? std::sqrt(variance) : 0;
    const double wide = std::max(spread, 1e-6);
    const double skewness = (third - 3 * first * variance - first * first * first) / (wide * wide * wide);
    const double root = std::sqrt(skewness * skewness + 4);
    SleptMove result{};
    for (int i = 0; i < 2; ++i) {
        const double z = (skewness + (i ? -root : root)) / 2;
        const double share = spread > 0 ? 1 / (1 + z * z) : 1 - i;
        result.weight[i] = static_cast<float>(share * sum);
        result.node[i] = static_cast<float>(std::max(first + spread * z, 1e-12) * epsilon);
    }
    return result;
}

uint64_t mixed(uint64_t x) {  // one step of the generator SplitMix64 (Steele, Lea and Flood 2014)
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Dropout on the components of tokens: each is dropped with `probability`, rounded to a multiple of 2^-16, or else
// multiplied by `scale`. The mask of a token is a function of the seed, the step and the token's place in the batch, and
// of nothing else: not of threads, instructions or earlier steps. Only its key is stored: see mask in loops_body.h.
class Dropout {
public:
    Dropout(double probability, uint64_t seed) : seed_(mixed(seed)) {
        if (!(probability >= 0 && probability < 1)) throw std::invalid_argument("dropout is not in [0, 1)");
        dropped_ = std::min(std::lround(probability * 65536), 65535l);
    }

    bool on() const { return dropped_ > 0; }
    float scale() const { return static_cast<float>(65536.0 / (65536 - dropped_)); }
    // A component is kept if its random number, 16 bits as the upper ones of an int32_t, is not below this.
    int32_t limit() const { return static_cast<int32_t>((dropped_ - 32768) * 65536); }

    void keys(int64_t step, int64_t count, std::vector<uint64_t>& out) const {
        const uint64_t first = mixed(seed_ + static_cast<uint64_t>(step));
        out.resize(count);
        for (int64_t i = 0; i < count; ++i) out[i] = mixed(first + static_cast<uint64_t>(i));
    }

private:
    uint64_t seed_;
    int64_t dropped_;  // of 65536
};

// The whole training step over one table, on the very arrays that hold the state of the torch optimiser.
class TrainingStep {
public:
    TrainingStep(Array<float> table, Array<float> moment, Array<float> square, Array<int64_t> last_step,
                 Array<int64_t> step, Array<double> moves, Array<int64_t> moves_from, double beta1, double beta2,
                 double epsilon, int64_t window)
        : arrays_{table, moment, square},
          last_step_(last_step), step_(step), moves_(moves), moves_from_(moves_from),
          rows_(table.ndim() == 2 ? table.shape(0) : 0), dim_(table.ndim() == 2 ? table.shape(1) : 0),
          beta1_(beta1), beta2_(beta2), epsilon_(epsilon), window_(window), slot_(rows_, -1) {
        check_shape(table, "table", {-1, -1});
        check_shape(moment, "exp_avg", {rows_, dim_});
        check_shape(square, "exp_avg_sq", {rows_, dim_});
        check_shape(last_step, "last_step", {rows_});
        check_shape(moves, "moves", {4, -1});
        if (step.size() != 1 || moves_from.size() != 1) throw std::invalid_argument("step and moves_from are scalars");
    }

    void catch_up(const Array<int32_t>& ids, int threads) {
        check_shape(ids, "ids", {-1});
        const int32_t* id = ids.data();
        const int64_t count = ids.shape(0);
        py::gil_scoped_release release;
        touched_.clear();
        for (int64_t i = 0; i < count; ++i) touch(id[i]);
        forget_slots();
        parallel_for(static_cast<int64_t>(touched_.size()), kRowGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t u = begin; u < end; ++u) catch_up_row(touched_[u]);
        });
    }

    double train(const Array<int32_t>& ids, const Array<int64_t>& offsets, const Array<int64_t>& columns, double margin,
                 double learning_rate, int threads, double probability, uint64_t seed) {
        check_shape(ids, "ids", {-1});
        check_shape(offsets, "offsets", {-1});
        check_shape(columns, "columns", {kColumns, -1});
        const Dropout dropout(probability, seed);
        const int64_t pairs = columns.shape(1);
        if (pairs == 0) throw std::invalid_argument("a batch without pairs");
        find_sentences(ids, offsets, columns);
        const int32_t* id = ids.data();
        py::gil_scoped_release release;
        index_occurrences(id, dropout);
        wake(threads);
        embed(id, dropout, threads);
        const double loss = gradients(pairs, static_cast<float>(margin), dropout, threads);
        adam(learning_rate, dropout, threads);
        return loss;
    }

private:
    int64_t& step() { return *step_.mutable_data(); }
    int64_t& moves_from() { return *moves_from_.mutable_data(); }
    float* row(int array, int64_t index) { return arrays_[array].mutable_data() + index * dim_; }

    void touch(int32_t id) {
        if (static_cast<uint32_t>(id) >= static_cast<uint64_t>(rows_)) {
            forget_slots();
            throw std::invalid_argument("id " + std::to_string(id) + " is not a row of the table");
        }
        if (slot_[id] < 0) {
            slot_[id] = static_cast<int32_t>(touched_.size());
            touched_.push_back(id);
        }
    }

    void forget_slots() {
        for (const int32_t id : touched_) slot_[id] = -1;
    }

    void find_sentences(const Array<int32_t>& ids, const Array<int64_t>& offsets, const Array<int64_t>& columns) {
        const int64_t sentences = offsets.shape(0) - 1, total = columns.size();
        begin_.resize(total);
        end_.resize(total);
        for (int64_t i = 0; i < total; ++i) {
            const int64_t sentence = columns.data()[i];
            if (sentence < 0 || sentence >= sentences) throw std::invalid_argument("a column names no sentence");
            begin_[i] = offsets.data()[sentence];
            end_[i] = offsets.data()[sentence + 1];
            if (begin_[i] < 0 || begin_[i] >= end_[i] || end_[i] > ids.shape(0)) {
                throw std::invalid_argument("offsets that do not grow within ids");
            }
        }
    }

    // touched_: the distinct rows; where_[first_[u] .. first_[u + 1]): the sentences of row u, one for each occurrence.
    void index_occurrences(const int32_t* id, const Dropout& dropout) {
        touched_.clear();
        first_.assign(1, 0);
        for (size_t x = 0; x < begin_.size(); ++x) {
            for (int64_t i = begin_[x]; i < end_[x]; ++i) {
                touch(id[i]);
                if (first_.size() <= touched_.size()) first_.push_back(0);
                ++first_[slot_[id[i]] + 1];
            }
        }
        for (size_t u = 1; u < first_.size(); ++u) first_[u] += first_[u - 1];
        where_.resize(first_.back());
        next_.assign(first_.begin(), first_.end() - 1);
        for (size_t x = 0; x < begin_.size(); ++x) {
            for (int64_t i = begin_[x]; i < end_[x]; ++i) where_[next_[slot_[id[i]]]++] = static_cast<int32_t>(x);
        }
        if (dropout.on()) deal_keys(id, dropout);
        forget_slots();
    }

    // keys_: those of the occurrences in the batch's order; row_keys_: in the order of where_.
    void deal_keys(const int32_t* id, const Dropout& dropout) {
        dropout.keys(step(), static_cast<int64_t>(where_.size()), keys_);
        row_keys_.resize(where_.size());
        next_.assign(first_.begin(), first_.end() - 1);
        const uint64_t* key = keys_.data();
        for (size_t x = 0; x < begin_.size(); ++x) {
            for (int64_t i = begin_[x]; i < end_[x]; ++i) row_keys_[next_[slot_[id[i]]]++] = *key++;
        }
    }

    // Bring the rows of the batch up to date, their moments left for `adam` to decay; now and then all rows, for the
    // reasons row_lazy_adam.py gives.
    void wake(int threads) {
        const int64_t longest = moves_.shape(1);
        const bool all = step() - moves_from() == longest;
        if (all || step() < window_ / 8) {
            parallel_for(rows_, 256, threads, [&](int64_t begin, int64_t end, int) {
                for (int64_t r = begin; r < end; ++r) catch_up_row(r);
            });
        }
        if (all) {
            moves_from() = step();
            std::fill_n(moves_.mutable_data(), 4 * longest, 0.0);
        }
        decays_.resize(touched_.size());
        parallel_for(static_cast<int64_t>(touched_.size()), kRowGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t u = begin; u < end; ++u) decays_[u] = move_row(touched_[u]);
        });
    }

    // Move a row as in the steps it slept through; its moments stay, and what would be left of them is returned.
    Decay move_row(int64_t r) {
        const int64_t last = last_step_.data()[r], slept = step() - last;
        if (last <= 0 || slept <= 0) return {1, 1};
        const SleptMove move = gauss_rule(moves_.data() + (last - moves_from()), moves_.shape(1), epsilon_);
        loops().move(row(0, r), row(1, r), row(2, r), dim_, move);
        return {static_cast<float>(std::pow(beta1_, static_cast<double>(slept))),
                static_cast<float>(std::pow(beta2_, static_cast<double>(slept)))};
    }

    void catch_up_row(int64_t r) {
        int64_t& last = last_step_.mutable_data()[r];
        if (last <= 0 || last >= step()) return;
        loops().decay(row(1, r), row(2, r), dim_, move_row(r));
        last = step();
    }

    void embed(const int32_t* id, const Dropout& dropout, int threads) {
        const int64_t count = static_cast<int64_t>(begin_.size());
        embeddings_.resize(count * dim_);
        gradients_.resize(count * dim_);
        const float* table = arrays_[0].data();
        if (dropout.on()) return embed_kept(table, id, dropout, threads);
        parallel_for(count, kSentenceGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t x = begin; x < end; ++x) {
                loops().mean_f32(table, dim_, id + begin_[x], end_[x] - begin_[x], embeddings_.data() + x * dim_);
            }
        });
    }

    void embed_kept(const float* table, const int32_t* id, const Dropout& dropout, int threads) {
        const int64_t count = static_cast<int64_t>(begin_.size());
        next_.assign(1, 0);  // the number of a sentence's first occurrence
        for (int64_t x = 0; x < count; ++x) next_.push_back(next_[x] + end_[x] - begin_[x]);
        parallel_for(count, kSentenceGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t x = begin; x < end; ++x) {
                const int64_t tokens = end_[x] - begin_[x];
                loops().sum_kept(table, dim_, id + begin_[x], keys_.data() + next_[x], tokens, dropout.limit(),
                                 dropout.scale() / static_cast<float>(tokens), embeddings_.data() + x * dim_);
            }
        });
    }

    double gradients(int64_t pairs, float margin, const Dropout& dropout, int threads) {
        const float scale = dropout.scale();
        losses_.resize(pairs);
        parallel_for(pairs, kPairGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t i = begin; i < end; ++i) {
                PairLoss pair{};
                pair.margin = margin;
                pair.inverse_count = 1.0f / static_cast<float>(pairs);
                for (int column = 0; column < kColumns; ++column) {
                    const int64_t x = column * pairs + i;
                    pair.embedding[column] = embeddings_.data() + x * dim_;
                    pair.gradient[column] = gradients_.data() + x * dim_;
                    pair.inverse_length[column] = scale / static_cast<float>(end_[x] - begin_[x]);
                }
                losses_[i] = loops().pair_loss(pair, dim_);
            }
        });
        double sum = 0;
        for (const float loss : losses_) sum += loss;
        return sum;
    }

    void adam(double learning_rate, const Dropout& dropout, int threads) {
        const double now = static_cast<double>(++step());
        const double scale1 = 1 - std::pow(beta1_, now), scale2 = std::sqrt(1 - std::pow(beta2_, now));
        AdamStep adam{};
        adam.moment_share = static_cast<float>(1 - beta1_);
        adam.square_decay = static_cast<float>(beta2_);
        adam.square_share = static_cast<float>(1 - beta2_);
        adam.root_scale = static_cast<float>(scale2);
        adam.epsilon = static_cast<float>(epsilon_);
        adam.rate = static_cast<float>(learning_rate / scale1);
        // With dropout a row's gradient is added up before, and Adam finds it alone.
        sums_.resize(std::max(threads, 1) * dim_);
        constexpr int32_t kAlone = 0;
        const int64_t rows = static_cast<int64_t>(touched_.size());
        parallel_for(rows, kRowGrain, threads, [&](int64_t begin, int64_t end, int thread) {
            for (int64_t u = begin; u < end; ++u) {
                const int64_t r = touched_[u], count = first_[u + 1] - first_[u];
                const int32_t* where = where_.data() + first_[u];
                const float* gradients = gradients_.data();
                float *sum = sums_.data() + thread * dim_, *w = row(0, r), *m = row(1, r), *v = row(2, r);
                if (dropout.on()) {
                    const uint64_t* keys = row_keys_.data() + first_[u];
                    loops().sum_kept(gradients, dim_, where, keys, count, dropout.limit(), 1, sum);
                    loops().adam(w, m, v, dim_, nullptr, sum, &kAlone, 1, decays_[u], adam);
                } else {
                    loops().adam(w, m, v, dim_, sum, gradients, where, count, decays_[u], adam);
                }
                last_step_.mutable_data()[r] = step();
            }
        });
        extend_moves(learning_rate * scale2 / scale1, scale2);
    }

    // Add this step's move to the sums of the rows that may be asleep since an earlier one.
    void extend_moves(double height, double scale2) {
        const int64_t stride = moves_.shape(1), from = moves_from();
        const int64_t first = std::max(from, step() - window_);
        double* moves = moves_.mutable_data();
        double decay = 1, growth = 1;  // (beta1 / sqrt(beta2))^asleep, beta2^(-asleep / 2)
        for (int64_t since = step() - 1; since >= first; --since) {
            decay *= beta1_ / std::sqrt(beta2_);
            growth /= std::sqrt(beta2_);
            double move = height * decay;
            for (int power = 0; power < 4; ++power) {
                moves[power * stride + since - from] += move;
                move *= scale2 * growth;
            }
        }
    }

    Array<float> arrays_[3];  // the table, exp_avg, exp_avg_sq
    Array<int64_t> last_step_, step_;
    Array<double> moves_;
    Array<int64_t> moves_from_;
    const int64_t rows_, dim_;
    const double beta1_, beta2_, epsilon_;
    const int64_t window_;
    std::vector<int32_t> slot_, touched_, where_;
    std::vector<int64_t> begin_, end_, first_, next_;
    std::vector<uint64_t> keys_, row_keys_;
    std::vector<Decay> decays_;
    std::vector<float> embeddings_, gradients_, losses_, sums_;
};

// The masks of dropout, 0 or 1, from the very loop that training uses.
Array<float> dropout_mask(uint64_t seed, int64_t step, int64_t occurrences, int64_t dim, double probability) {
    if (occurrences < 0 || dim < 0) throw std::invalid_argument("a mask of negative size");
    const Dropout dropout(probability, seed);
    std::vector<uint64_t> keys;
    dropout.keys(step, occurrences, keys);
    const std::vector<float> ones(dim, 1.0f);
    constexpr int32_t kOnly = 0;
    Array<float> masks({occurrences, dim});
    for (int64_t i = 0; i < occurrences; ++i) {
        loops().sum_kept(ones.data(), dim, &kOnly, &keys[i], 1, dropout.limit(), 1, masks.mutable_data() + i * dim);
    }
    return masks;
}

}  // namespace

void bind_training_step(py::module_& module) {
    using namespace py::literals;
    py::class_<TrainingStep>(module, "TrainingStep",
                             "Training steps on the arrays of st_paragram.training.row_lazy_adam's state.")
        .def(py::init<Array<float>, Array<float>, Array<float>, Array<int64_t>, Array<int64_t>, Array<double>,
                      Array<int64_t>, double, double, double, int64_t>(),
             "table"_a.noconvert(), "exp_avg"_a.noconvert(), "exp_avg_sq"_a.noconvert(), "last_step"_a.noconvert(),
             "step"_a.noconvert(), "moves"_a.noconvert(), "moves_from"_a.noconvert(), "beta1"_a, "beta2"_a,
             "epsilon"_a, "window"_a)
        .def("catch_up", &TrainingStep::catch_up, "ids"_a.noconvert(), "threads"_a,
             "Make the steps that the rows `ids`, int32 (n,), have slept through.")
        .def("train", &TrainingStep::train, "ids"_a.noconvert(), "offsets"_a.noconvert(), "columns"_a.noconvert(),
             "margin"_a, "learning_rate"_a, "threads"_a, "dropout"_a = 0.0, "seed"_a = 0,
             "One optimiser step of the margin loss. columns, int64 (4, B), names the sentences s, t, negative of s and "
             "negative of t: sentence i is ids[offsets[i]:offsets[i + 1]]. Each component of each token is dropped with "
             "probability dropout, rounded to a multiple of 2^-16. Returns the loss.");
    module.def("dropout_mask", &dropout_mask, "seed"_a, "step"_a, "occurrences"_a, "dim"_a, "dropout"_a,
               "What TrainingStep.train keeps in the step after `step` others: 1 or 0, float32 (occurrences, dim), for the "
               "tokens of the batch's first sentence, its second one, and so on.");
}

}  // namespace st_paragram
