// What the compiled training step trusts of an optimiser's state.
#pragma once

#include "bindings.h"
#include "loops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace st_paragram {

constexpr int64_t kMostSteps = int64_t{1} << 53;  // a double holds their number

// The arrays of an optimiser's state, which may come from a damaged checkpoint. Memory safety depends on what is checked
// here, and on nothing else; st_paragram/learning/training/row_lazy_state.py says what else a state must be.
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

    // Cheap, hence done for every call: the arrays belong to the caller, who may have changed them.
    void check_counters() const {
        const bool good = *step >= 0 && *step < kMostSteps && *moves_from >= 0 && *moves_from <= *step;
        if (!good || *step - *moves_from > width) {
            refuse("step " + std::to_string(*step) + ", moves_from " + std::to_string(*moves_from) + ", " +
                   std::to_string(width) + " columns of moves");
        }
    }

    // A row sleeps since a step that has a column in moves, or has never been touched, or is awake.
    void check_row(int64_t r) const {
        const int64_t last = last_step[r];
        if (last < 0 || last > *step || (last > 0 && last < *step && last < *moves_from)) {
            refuse("last_step " + std::to_string(last) + " of row " + std::to_string(r) + " at step " +
                   std::to_string(*step) + ", moves_from " + std::to_string(*moves_from));
        }
    }

private:
    [[noreturn]] static void refuse(const std::string& seen) {
        throw SettingsError("the optimiser's state is damaged: " + seen + "; resume from another checkpoint");
    }
};

// Two points with the moments 0 .. 3 of what a row has to move: see _gauss_rule in row_lazy_adam.py.
inline SleptMove gauss_rule(const double* moves, int64_t stride, double epsilon) {
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

}  // namespace st_paragram
