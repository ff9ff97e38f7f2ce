// A training step on the rows that it touches: catch up, embed, loss, gradients, Adam. The reference is plain torch
// (tests/support/reference.py); st_paragram/learning/training/compiled_adam.py explains the method.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace st_paragram {
namespace {

constexpr int kColumns = 4;  // s, t, negative of s, negative of t
constexpr int64_t kRowGrain = 16, kSentenceGrain = 8, kPairGrain = 4;
constexpr int64_t kMostPairs = 1 << 29;           // numbers of their sentences fit in 32 bits
constexpr int64_t kMostSteps = int64_t{1} << 53;  // a double holds their number exactly

uint64_t mixed(uint64_t x) {  // one step of the generator SplitMix64 (Steele, Lea and Flood 2014)
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Dropout on the dimensions of tokens: each is dropped with `probability`, rounded to a multiple of 2^-16, or else
// multiplied by `scale`. The mask of a token depends only on the seed, the step and the token's position in the batch,
// not on threads, instructions or earlier steps. Only its key is stored: see mask in loops_body.h.
class Dropout {
public:
    Dropout(double probability, uint64_t seed) : seed_(mixed(seed)) {
        if (!(probability >= 0 && probability < 1)) throw std::invalid_argument("dropout is not in [0, 1)");
        dropped_ = std::min(std::lround(probability * 65536), 65535l);
    }

    bool on() const { return dropped_ > 0; }
    float scale() const { return static_cast<float>(65536.0 / (65536 - dropped_)); }
    // A dimension is kept if its random number (16 bits, in the upper half of an int32_t) is not below this.
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

// The arrays of an optimizer's state, which may come from a damaged checkpoint. Memory safety depends only on the
// checks made here.
struct AdamState {
    float *table, *moment, *square;  // (rows, dim)
    int64_t *last_step, *step;       // (rows,), ()
    double* moves;                   // (4, width)
    int64_t* moves_from;             // ()
    int64_t rows, dim, width;

    static AdamState of(Array<float>& table, Array<float>& moment, Array<float>& square, Array<int64_t>& last_step,
                        Array<int64_t>& step, Array<double>& moves, Array<int64_t>& moves_from) {
        check_shape(table, "table", {-1, -1});
        const int64_t rows = table.shape(0), dim = table.shape(1);
        check_shape(moment, "exp_avg", {rows, dim});
        check_shape(square, "exp_avg_sq", {rows, dim});
        check_shape(last_step, "last_step", {rows});
        check_shape(step, "step", {});
        check_shape(moves, "moves", {4, -1});
        check_shape(moves_from, "moves_from", {});
        AdamState state{
            writable(table, "table", moment, square, last_step, step, moves, moves_from),
            writable(moment, "exp_avg", square, last_step, step, moves, moves_from),
            writable(square, "exp_avg_sq", last_step, step, moves, moves_from),
            writable(last_step, "last_step", step, moves, moves_from),
            writable(step, "step", moves, moves_from),
            writable(moves, "moves", moves_from),
            writable(moves_from, "moves_from"),
            rows,
            dim,
            moves.shape(1),
        };
        state.check_counters();
        for (int64_t r = 0; r < rows; ++r) state.check_row(r);
        return state;
    }

    // Cheap, so done in every call: the arrays belong to the caller, who may have changed them.
    void check_counters() const {
        const bool good = *step >= 0 && *step < kMostSteps && *moves_from >= 0 && *moves_from <= *step;
        if (!good || *step - *moves_from > width) {
            refuse("step " + std::to_string(*step) + ", moves_from " + std::to_string(*moves_from) + ", " +
                   std::to_string(width) + " columns of moves");
        }
    }

    // A row has been asleep since a step that has a column in moves, or was never touched, or is awake.
    void check_row(int64_t r) const {
        const int64_t last = last_step[r];
        if (last < 0 || last > *step || (last > 0 && last < *step && last < *moves_from)) {
            refuse("last_step " + std::to_string(last) + " of row " + std::to_string(r) + " at step " +
                   std::to_string(*step) + ", moves_from " + std::to_string(*moves_from));
        }
    }

private:
    [[noreturn]] static void refuse(const std::string& seen) {
        throw SettingsError("the optimizer's state is damaged: " + seen + "; resume from another checkpoint");
    }
};

// Two points with the moments 0 .. 3 of the moves that a row has missed, see compiled_adam.py. If the spread is below
// one hundredth of the mean (always, after a few hundred steps), the mean alone is accurate enough.
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

// The whole training step over one table, in the arrays that hold the state of the torch optimizer. A call either fails
// before it changes anything (too little memory, too few threads, wrong arguments), or is completed.
class TrainingStep {
public:
    TrainingStep(Array<float> table, Array<float> moment, Array<float> square, Array<int64_t> last_step,
                 Array<int64_t> step, Array<double> moves, Array<int64_t> moves_from, double beta1, double beta2,
                 double epsilon, int64_t window)
        : arrays_(py::make_tuple(table, moment, square, last_step, step, moves, moves_from)),
          state_(AdamState::of(table, moment, square, last_step, step, moves, moves_from)),
          beta1_(beta1), beta2_(beta2), epsilon_(epsilon), window_(window), slot_(state_.rows, -1) {
        const bool converges = beta1 >= 0 && beta2 < 1 && beta1 * beta1 < beta2 && epsilon > 0 && window > 0;
        if (!converges) throw std::invalid_argument("betas, epsilon or window are not those of an Adam that converges");
    }

    void catch_up(const Array<int32_t>& ids, int threads) {
        const auto alone = enter();
        check_shape(ids, "ids", {-1});
        check_apart(ids);
        state_.check_counters();
        const int32_t* id = ids.data();
        const int64_t count = ids.shape(0);
        py::gil_scoped_release release;
        {
            const Touching touching(*this);
            for (int64_t i = 0; i < count; ++i) touch(id[i]);
        }
        start_threads(threads);
        parallel_for(static_cast<int64_t>(touched_.size()), kRowGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t u = begin; u < end; ++u) catch_up_row(touched_[u]);
        });
    }

    // Move all sleeping rows, for an evaluation, but do not change their moments.
    void move_all(int threads) {
        const auto alone = enter();
        state_.check_counters();
        py::gil_scoped_release release;
        start_threads(threads);
        parallel_for(state_.rows, 256, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t r = begin; r < end; ++r) move_row(r);
        });
    }

    double train(const Array<int32_t>& ids, const Array<int64_t>& offsets, const Array<int64_t>& columns, double margin,
                 double learning_rate, int threads, double probability, uint64_t seed, const py::object& lesson) {
        const auto alone = enter();
        check_shape(ids, "ids", {-1});
        check_shape(offsets, "offsets", {-1});
        check_shape(columns, "columns", {kColumns, -1});
        check_apart(ids, offsets, columns);
        state_.check_counters();
        const Dropout dropout(probability, seed);
        const int64_t pairs = columns.shape(1);
        if (pairs == 0) throw std::invalid_argument("a batch without pairs");
        if (pairs > kMostPairs) throw std::invalid_argument("more pairs than 32 bits can count");
        find_sentences(ids, offsets, columns);
        const int32_t* id = ids.data();
        const bool taught = !lesson.is_none();
        py::gil_scoped_release release;
        index_occurrences(id, dropout);
        lesson_.resize(taught ? 2 * pairs * state_.dim : 0);
        make_room(pairs, usable_threads(threads));
        start_threads(threads);
        wake(threads);
        embed(id, dropout, threads);
        if (taught) ask(lesson, 2 * pairs);
        const double loss = gradients(pairs, static_cast<float>(margin), dropout, threads);
        if (taught) add_lesson(2 * pairs, dropout, threads);
        adam(learning_rate, dropout, threads);
        return loss;
    }

private:
    // One caller at a time, since steps run without the GIL. Never waits: after a fork the other caller may be gone.
    std::unique_lock<std::mutex> enter() {
        std::unique_lock<std::mutex> lock(callers_, std::try_to_lock);
        if (!lock) throw std::runtime_error("another thread is using this object");
        return lock;
    }

    int64_t step() const { return *state_.step; }
    int64_t moves_from() const { return *state_.moves_from; }

    template <class... Inputs>
    void check_apart(const Inputs&... inputs) const {
        for (const py::handle array : arrays_) {
            const auto own = py::reinterpret_borrow<py::array>(array);
            if ((overlap(own, inputs) || ...)) throw std::invalid_argument("a batch shares its memory with the state");
        }
    }

    // While this object exists, slot_ holds the positions of touched rows in touched_.
    struct Touching {
        TrainingStep& step;
        explicit Touching(TrainingStep& of) : step(of) { step.touched_.clear(); }
        ~Touching() {
            for (const int32_t id : step.touched_) step.slot_[id] = -1;
        }
    };

    void touch(int32_t id) {
        if (id < 0 || id >= state_.rows) {
            throw std::invalid_argument("id " + std::to_string(id) + " is not a row of the table");
        }
        if (slot_[id] < 0) {
            touched_.push_back(id);
            slot_[id] = static_cast<int32_t>(touched_.size() - 1);
        }
    }

    void find_sentences(const Array<int32_t>& ids, const Array<int64_t>& offsets, const Array<int64_t>& columns) {
        const int64_t sentences = offsets.shape(0) - 1, total = columns.size();
        begin_.resize(total);
        end_.resize(total);
        start_.assign(total, 0);
        for (int64_t i = 0; i < total; ++i) {
            const int64_t sentence = columns.data()[i];
            if (sentence < 0 || sentence >= sentences) throw std::invalid_argument("a column names no sentence");
            begin_[i] = offsets.data()[sentence];
            end_[i] = offsets.data()[sentence + 1];
            if (begin_[i] < 0 || begin_[i] >= end_[i] || end_[i] > ids.shape(0)) {
                throw std::invalid_argument("offsets that do not grow within ids");
            }
            if (i > 0) start_[i] = start_[i - 1] + end_[i - 1] - begin_[i - 1];
        }
    }

    // touched_: the distinct rows; where_[first_[u] .. first_[u + 1]): the sentences of row u, once per occurrence.
    void index_occurrences(const int32_t* id, const Dropout& dropout) {
        const Touching touching(*this);
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
    }

    // keys_: keys of the occurrences in the batch's order; row_keys_: in the order of where_.
    void deal_keys(const int32_t* id, const Dropout& dropout) {
        dropout.keys(step(), static_cast<int64_t>(where_.size()), keys_);
        row_keys_.resize(where_.size());
        next_.assign(first_.begin(), first_.end() - 1);
        const uint64_t* key = keys_.data();
        for (size_t x = 0; x < begin_.size(); ++x) {
            for (int64_t i = begin_[x]; i < end_[x]; ++i) row_keys_[next_[slot_[id[i]]]++] = *key++;
        }
    }

    // Allocate all memory that the rest of the step needs.
    void make_room(int64_t pairs, int threads) {
        const int64_t dim = state_.dim, rows = std::max<int64_t>(static_cast<int64_t>(begin_.size()), threads);
        if (dim > 0 && rows > std::numeric_limits<int64_t>::max() / dim) throw std::bad_alloc();
        decays_.resize(touched_.size());
        embeddings_.resize(begin_.size() * dim);
        gradients_.resize(begin_.size() * dim);
        losses_.resize(pairs);
        sums_.resize(threads * dim);
    }

    // Bring the rows of the batch up to date, but leave it to `adam` to decay their moments. From time to time, update
    // all rows, for the reasons in compiled_adam.py.
    void wake(int threads) {
        const bool all = step() - moves_from() == state_.width;
        if (all || step() < window_ / 8) {
            parallel_for(state_.rows, 256, threads, [&](int64_t begin, int64_t end, int) {
                for (int64_t r = begin; r < end; ++r) catch_up_row(r);
            });
        }
        if (all) {
            *state_.moves_from = step();
            std::fill_n(state_.moves, 4 * state_.width, 0.0);
        }
        parallel_for(static_cast<int64_t>(touched_.size()), kRowGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t u = begin; u < end; ++u) decays_[u] = move_row(touched_[u]);
        });
    }

    // Make the moves of a row that it missed while asleep; return the factors by which its moments would decay.
    Decay move_row(int64_t r) {
        const int64_t last = state_.last_step[r];
        if (last <= 0 || last >= step()) return {1, 1};
        state_.check_row(r);
        const int64_t slept = step() - last;
        const SleptMove move = gauss_rule(state_.moves + (last - moves_from()), state_.width, epsilon_);
        const int64_t at = r * state_.dim;
        loops().move(state_.table + at, state_.moment + at, state_.square + at, state_.dim, move);
        return {static_cast<float>(std::pow(beta1_, static_cast<double>(slept))),
                static_cast<float>(std::pow(beta2_, static_cast<double>(slept)))};
    }

    void catch_up_row(int64_t r) {
        const int64_t last = state_.last_step[r];
        if (last > 0 && last < step()) settle(r, move_row(r));
    }

    void embed(const int32_t* id, const Dropout& dropout, int threads) {
        const int64_t count = static_cast<int64_t>(begin_.size()), dim = state_.dim;
        const float* table = state_.table;
        parallel_for(count, kSentenceGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t x = begin; x < end; ++x) {
                const int64_t tokens = end_[x] - begin_[x];
                float* embedding = embeddings_.data() + x * dim;
                if (dropout.on()) {
                    const float scale = dropout.scale() / static_cast<float>(tokens);
                    loops().sum_kept(table, dim, id + begin_[x], keys_.data() + start_[x], tokens, dropout.limit(), scale,
                                     embedding);
                } else {
                    loops().mean_f32(table, dim, id + begin_[x], tokens, embedding);
                }
            }
        });
    }

    // Call a lesson with the embeddings of the first `count` sentences, s and t. By now rows have moved: if the lesson
    // fails, they stay caught up, and no step is made.
    void ask(const py::object& lesson, int64_t count) {
        const py::gil_scoped_acquire acquire;
        const int64_t now = step(), from = moves_from();
        const size_t bytes = lesson_.size() * sizeof(float);
        try {
            Array<float> embeddings({count, state_.dim});
            if (bytes) std::memcpy(embeddings.mutable_data(), embeddings_.data(), bytes);
            const py::object answer = lesson(embeddings);
            if (!py::isinstance<Array<float>>(answer)) throw refusal("the lesson's gradient", "is not float32 by rows");
            const auto gradient = py::reinterpret_borrow<Array<float>>(answer);
            check_shape(gradient, "the lesson's gradient", {count, state_.dim});
            if (bytes) std::memcpy(lesson_.data(), gradient.data(), bytes);
            if (step() != now || moves_from() != from) throw std::invalid_argument("the lesson changed the state");
        } catch (...) {
            for (size_t u = 0; u < touched_.size(); ++u) settle(touched_[u], decays_[u]);
            throw;
        }
    }

    void settle(int64_t r, const Decay& left) {
        int64_t& last = state_.last_step[r];
        if (last <= 0 || last >= step()) return;
        loops().decay(state_.moment + r * state_.dim, state_.square + r * state_.dim, state_.dim, left);
        last = step();
    }

    // Add the lesson's gradients to those of the margin loss, as token gradients.
    void add_lesson(int64_t count, const Dropout& dropout, int threads) {
        const int64_t dim = state_.dim;
        parallel_for(count, kSentenceGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t x = begin; x < end; ++x) {
                const float share = dropout.scale() / static_cast<float>(end_[x] - begin_[x]);
                float* gradient = gradients_.data() + x * dim;
                const float* more = lesson_.data() + x * dim;
                for (int64_t d = 0; d < dim; ++d) gradient[d] += share * more[d];
            }
        });
    }

    double gradients(int64_t pairs, float margin, const Dropout& dropout, int threads) {
        const float scale = dropout.scale();
        const int64_t dim = state_.dim;
        parallel_for(pairs, kPairGrain, threads, [&](int64_t begin, int64_t end, int) {
            for (int64_t i = begin; i < end; ++i) {
                PairLoss pair{};
                pair.margin = margin;
                pair.inverse_count = 1 / static_cast<float>(pairs);
                pair.dim = dim;
                for (int column = 0; column < kColumns; ++column) {
                    const int64_t x = column * pairs + i;
                    pair.embedding[column] = embeddings_.data() + x * dim;
                    pair.gradient[column] = gradients_.data() + x * dim;
                    pair.inverse_length[column] = scale / static_cast<float>(end_[x] - begin_[x]);
                }
                losses_[i] = loops().pair_loss(pair);
            }
        });
        double sum = 0;
        for (const float loss : losses_) sum += loss;
        return sum;
    }

    void adam(double learning_rate, const Dropout& dropout, int threads) {
        const double now = static_cast<double>(++*state_.step);
        const double scale1 = 1 - std::pow(beta1_, now), scale2 = std::sqrt(1 - std::pow(beta2_, now));
        AdamStep adam{};
        adam.moment_share = static_cast<float>(1 - beta1_);
        adam.square_decay = static_cast<float>(beta2_);
        adam.square_share = static_cast<float>(1 - beta2_);
        adam.root_scale = static_cast<float>(scale2);
        adam.epsilon = static_cast<float>(epsilon_);
        adam.rate = static_cast<float>(learning_rate / scale1);
        const int64_t rows = static_cast<int64_t>(touched_.size());
        parallel_for(rows, kRowGrain, threads, [&](int64_t begin, int64_t end, int thread) {
            for (int64_t u = begin; u < end; ++u) adam_row(u, adam, dropout, sums_.data() + thread * state_.dim);
        });
        extend_moves(learning_rate * scale2 / scale1, scale2);
    }

    // With dropout, a row's gradients are first added up in `sum`, and Adam gets only the sum.
    void adam_row(int64_t u, const AdamStep& adam, const Dropout& dropout, float* sum) {
        constexpr int32_t kAlone = 0;
        const int64_t dim = state_.dim, at = touched_[u] * dim, count = first_[u + 1] - first_[u];
        const int32_t* where = where_.data() + first_[u];
        const float* gradients = gradients_.data();
        float *w = state_.table + at, *m = state_.moment + at, *v = state_.square + at;
        if (dropout.on()) {
            const uint64_t* keys = row_keys_.data() + first_[u];
            loops().sum_kept(gradients, dim, where, keys, count, dropout.limit(), 1, sum);
            loops().adam(w, m, v, dim, nullptr, sum, &kAlone, 1, decays_[u], adam);
        } else {
            loops().adam(w, m, v, dim, sum, gradients, where, count, decays_[u], adam);
        }
        state_.last_step[touched_[u]] = step();
    }

    // Add this step's move to the sums of the rows that may have been asleep since an earlier step.
    void extend_moves(double height, double scale2) {
        const int64_t stride = state_.width, from = moves_from();
        const int64_t first = std::max(from, step() - window_);
        double decay = 1, growth = 1;  // (beta1 / sqrt(beta2))^asleep, beta2^(-asleep / 2)
        for (int64_t since = step() - 1; since >= first; --since) {
            decay *= beta1_ / std::sqrt(beta2_);
            growth /= std::sqrt(beta2_);
            double move = height * decay;
            for (int power = 0; power < 4; ++power) {
                state_.moves[power * stride + since - from] += move;
                move *= scale2 * growth;
            }
        }
    }

    std::mutex callers_;
    const py::tuple arrays_;  // the arrays that state_ points to
    const AdamState state_;
    const double beta1_, beta2_, epsilon_;
    const int64_t window_;
    std::vector<int32_t> slot_, touched_, where_;
    std::vector<int64_t> begin_, end_, start_, first_, next_;  // start_: the number of a sentence's first occurrence
    std::vector<uint64_t> keys_, row_keys_;
    std::vector<Decay> decays_;
    std::vector<float> embeddings_, gradients_, lesson_, losses_, sums_;
};

// The dropout masks, 0 or 1, from the same loop that training uses.
Array<float> dropout_mask(uint64_t seed, int64_t step, int64_t occurrences, int64_t dim, double probability) {
    if (occurrences < 0 || dim < 0) throw std::invalid_argument("a mask of negative size");
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(sizeof(float));
    if (dim > kMost / std::max<int64_t>(occurrences, 1)) throw std::bad_alloc();
    const Dropout dropout(probability, seed);
    Array<float> masks({occurrences, dim});  // first, since numpy rejects sizes that are too large
    if (masks.size() == 0) return masks;
    std::vector<uint64_t> keys;
    dropout.keys(step, occurrences, keys);
    const std::vector<float> ones(dim, 1.0f);
    constexpr int32_t kOnly = 0;
    for (int64_t i = 0; i < occurrences; ++i) {
        loops().sum_kept(ones.data(), dim, &kOnly, &keys[i], 1, dropout.limit(), 1, masks.mutable_data() + i * dim);
    }
    return masks;
}

}  // namespace

void bind_training_step(py::module_& module) {
    using namespace py::literals;
    py::class_<TrainingStep>(module, "TrainingStep",
                             "Training steps on the arrays of st_paragram.learning.training.compiled_adam's state.")
        .def(py::init<Array<float>, Array<float>, Array<float>, Array<int64_t>, Array<int64_t>, Array<double>,
                      Array<int64_t>, double, double, double, int64_t>(),
             "table"_a.noconvert(), "exp_avg"_a.noconvert(), "exp_avg_sq"_a.noconvert(), "last_step"_a.noconvert(),
             "step"_a.noconvert(), "moves"_a.noconvert(), "moves_from"_a.noconvert(), "beta1"_a, "beta2"_a,
             "epsilon"_a, "window"_a)
        .def("catch_up", &TrainingStep::catch_up, "ids"_a.noconvert(), "threads"_a,
             "Make the steps that the rows `ids`, int32 (n,), have slept through.")
        .def("move_all", &TrainingStep::move_all, "threads"_a,
             "Move all rows as in the steps they have slept through; their moments and counters stay as they are.")
        .def("train", &TrainingStep::train, "ids"_a.noconvert(), "offsets"_a.noconvert(), "columns"_a.noconvert(),
             "margin"_a, "learning_rate"_a, "threads"_a, "dropout"_a = 0.0, "seed"_a = 0, "lesson"_a = py::none(),
             "One optimizer step of the margin loss. columns, int64 (4, B), names the sentences s, t, negative of s and "
             "negative of t: sentence i is ids[offsets[i]:offsets[i + 1]]. Each component of each token is dropped with "
             "probability dropout, rounded to a multiple of 2^-16. lesson is called with the embeddings of the s and then of "
             "the t, float32 (2B, D), and returns the gradient of a further term with respect to them, of the same shape. "
             "Returns the loss, without the further term.");
    module.def("dropout_mask", &dropout_mask, "seed"_a, "step"_a, "occurrences"_a, "dim"_a, "dropout"_a,
               "What TrainingStep.train keeps in the step after `step` others: 1 or 0, float32 (occurrences, dim), for the "
               "tokens of the batch's first sentence, its second one, and so on.");
}

}  // namespace st_paragram
