// The innermost loops, compiled once for each instruction set and chosen when the module is loaded.
#pragma once

#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
// The bodies use builtins, so that files compiled for newer processors do not share functions of the standard library.
// Microsoft's compiler builds only the generic loops, so nothing can be shared there.
#include <cmath>
#include <cstring>
#define __builtin_memcpy std::memcpy
#define __builtin_sqrtf std::sqrt
#define __builtin_fabsf std::fabs
#define __builtin_nearbyintf std::nearbyint
#endif

namespace st_paragram {

// The moves of a table row for the steps that it was asleep, with the same arithmetic as in
// st_paragram/learning/training/compiled_adam.py.
struct SleptMove { float weight[2], node[2]; };

// The factors by which a row's moments decay in those steps.
struct Decay { float moment, square; };

struct AdamStep {
    float moment_share, square_decay, square_share;  // 1 - beta1, beta2, 1 - beta2
    float root_scale, epsilon, rate;                 // sqrt(1 - beta2^t), epsilon, lr / (1 - beta1^t)
};

// One pair and its negatives: embeddings, the gradients to fill, and the factor of each gradient.
struct PairLoss {
    const float* embedding[4];  // s, t, negative of s, negative of t
    float* gradient[4];
    float inverse_length[4];  // 1 / tokens of each sentence: the gradients are those of its tokens
    float margin, inverse_count;
    int64_t dim;
};

struct Loops {
    const char* name;

    // out = mean of rows `ids` of a table of `dim` columns; zero without ids.
    void (*mean_f32)(const float* table, int64_t dim, const int32_t* ids, int64_t count, float* out);
    // The same for rows in IEEE half precision, for 8-bit rows with one scale per row, and for 4-bit rows with one
    // scale per row and two dimensions per byte (`dim` is even).
    void (*mean_f16)(const uint16_t* table, int64_t dim, const int32_t* ids, int64_t count, float* out);
    void (*mean_i8)(const int8_t* table, const float* scales, int64_t dim, const int32_t* ids, int64_t count,
                    float* out);
    void (*mean_i4)(const uint8_t* table, const float* scales, int64_t dim, const int32_t* ids, int64_t count,
                    float* out);
    // Scale to length 1, as torch.nn.functional.normalize does: vectors shorter than 1e-12 stay short.
    void (*normalize)(float* row, int64_t dim);
    // Whether no number is infinite or NaN.
    bool (*is_finite)(const float* row, int64_t dim);

    void (*move)(float* row, const float* moment, const float* square, int64_t dim, const SleptMove& slept);
    void (*decay)(float* moment, float* square, int64_t dim, const Decay& decay);
    // Add up rows `which` of `gradients` (in `sum`, `dim` columns), decay the moments, make a step of Adam with the sum.
    void (*adam)(float* row, float* moment, float* square, int64_t dim, float* sum, const float* gradients,
                 const int32_t* which, int64_t count, const Decay& decay, const AdamStep& step);
    // out = scale * the sum of rows `which` of an array of `dim` columns, without the dimensions that their masks drop.
    void (*sum_kept)(const float* rows, int64_t dim, const int32_t* which, const uint64_t* keys, int64_t count,
                     int32_t limit, float scale, float* out);
    // Loss of a pair (its share of the batch's mean), and the gradients.
    float (*pair_loss)(const PairLoss& pair);

    // out = row rounded to integers from -levels to levels, the largest being `levels`. Returns the value of one unit
    // for a row of length 1, so that products of these integers become cosines.
    float (*quantize)(const float* row, int64_t dim, int levels, int8_t* out);
    // Products of 8-bit vectors, see hardest_negatives.cpp. Null if the instruction set has nothing fast. sums[r * 16 +
    // c] = sum over k of rows[r * depth + k] * column c of the panel, for r < 4 and the panel's 16 columns; depth is a
    // multiple of 16, rows hold 0 .. 63 and columns -63 .. 63.
    void (*products)(const uint8_t* rows, const int8_t* panel, int64_t depth, int32_t* sums);
    // For one row of similarities: the first column (within `count`) of the maximum, and the running best of columns.
    int64_t (*scan)(const float* similarity, int64_t count, int32_t row, float* best_of_column, int32_t* row_of_column,
                    float* largest);

    // The first index from `begin` on whose value is above `least` (or above its entry in an array), or else `end`.
    int64_t (*first_above)(const float* values, int64_t begin, int64_t end, float least);
    int64_t (*first_better)(const float* values, const float* least, int64_t begin, int64_t end);
    // Product of a vector and a row that is first divided by `length`, in double precision, always summed in the order
    // of st_paragram/tools/neighbors/vectors.py.
    double (*product_f32)(const float* vector, const float* row, float length, int64_t dim);
    double (*product_f16)(const float* vector, const uint16_t* row, float length, int64_t dim);
    double (*product_i8)(const float* vector, const int8_t* row, float length, int64_t dim);
    // Prefetch memory.
    void (*ask)(const void* row, int64_t bytes);
};

extern const Loops loops_generic, loops_avx2, loops_avx512;

// The fastest loops that this processor runs; ST_PARAGRAM_INSTRUCTIONS=generic|avx2|avx512 selects slower loops.
const Loops& loops();

}  // namespace st_paragram
