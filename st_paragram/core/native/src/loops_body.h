// Bodies of the loops in loops.h. Included by one file for each instruction set, after its flags are set, so nothing
// here may be shared between those files: all code is in an unnamed namespace and does not use the standard library.

namespace {

inline void ask_for(const void* row, int64_t bytes) {
#if defined(__GNUC__)
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(row) + i);
#else
    (void)row, (void)bytes;
#endif
}

#ifdef ST_PARAGRAM_HALF_PRECISION
inline float half_to_float(uint16_t value) { return _cvtsh_ss(value); }
#else
inline float half_to_float(uint16_t value) {
    // IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
    const uint32_t sign = static_cast<uint32_t>(value & 0x8000u) << 16;
    const uint32_t exponent = (value >> 10) & 31u, fraction = value & 1023u;
    uint32_t bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | fraction << 13;
    } else if (exponent > 0) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        const float tiny = static_cast<float>(fraction) * 5.9604644775390625e-8f;  // 2^-24
        return sign ? -tiny : tiny;
    }
    float result;
    __builtin_memcpy(&result, &bits, sizeof result);
    return result;
}
#endif

// The four kinds of tables from which means are computed: `add` adds columns first .. first + width of a row to sums;
// `kAhead` rows are prefetched; a number in memory holds `kPerCell` dimensions.
struct Floats {
    static constexpr int64_t kAhead = 4, kPerCell = 1;
    const float* rows;
    int64_t dim;

    const float* at(int32_t id, int64_t first) const { return rows + static_cast<int64_t>(id) * dim + first; }

    template <int N>
    void add(int32_t id, int64_t first, float* __restrict sum, int64_t width = N) const {
        const float* row = at(id, first);
        for (int64_t d = 0; d < width; ++d) sum[d] += row[d];
    }
};

struct Halves {
    static constexpr int64_t kAhead = 8, kPerCell = 1;
    const uint16_t* rows;
    int64_t dim;

    const uint16_t* at(int32_t id, int64_t first) const { return rows + static_cast<int64_t>(id) * dim + first; }

    template <int N>
    void add(int32_t id, int64_t first, float* __restrict sum, int64_t width = N) const {
        const uint16_t* row = at(id, first);
#ifdef ST_PARAGRAM_HALF_PRECISION
        if (N % 8 == 0) {
            for (int d = 0; d < N; d += 8) {
                const __m256 values = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + d)));
                _mm256_storeu_ps(sum + d, _mm256_add_ps(_mm256_loadu_ps(sum + d), values));
            }
            return;
        }
#endif
        for (int64_t d = 0; d < width; ++d) sum[d] += half_to_float(row[d]);
    }
};

struct Bytes {
    static constexpr int64_t kAhead = 8, kPerCell = 1;
    const int8_t* rows;
    const float* scales;
    int64_t dim;

    const int8_t* at(int32_t id, int64_t first) const { return rows + static_cast<int64_t>(id) * dim + first; }

    template <int N>
    void add(int32_t id, int64_t first, float* __restrict sum, int64_t width = N) const {
        const int8_t* row = at(id, first);
        const float scale = scales[id];
#ifdef ST_PARAGRAM_HALF_PRECISION  // the instructions that come with it
        if (N % 8 == 0) {
            const __m256 factor = _mm256_set1_ps(scale);
            for (int d = 0; d < N; d += 8) {
                const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + d));
                const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
                _mm256_storeu_ps(sum + d, _mm256_fmadd_ps(factor, values, _mm256_loadu_ps(sum + d)));
            }
            return;
        }
#endif
#if defined(ST_PARAGRAM_HALF_PRECISION) || defined(__FP_FAST_FMAF)  // as above; not every compiler fuses here by itself
        for (int64_t d = 0; d < width; ++d) sum[d] = __builtin_fmaf(scale, static_cast<float>(row[d]), sum[d]);
#else
        for (int64_t d = 0; d < width; ++d) sum[d] += scale * static_cast<float>(row[d]);
#endif
    }
};

// Two dimensions per byte, -8 to 7: the lower four bits of byte j are dimension 2j, the upper four 2j + 1. The sums of
// even dimensions come first, then those of odd dimensions.
struct Nibbles {
    static constexpr int64_t kAhead = 8, kPerCell = 2;
    const uint8_t* rows;
    const float* scales;
    int64_t dim;

    const uint8_t* at(int32_t id, int64_t first) const { return rows + (static_cast<int64_t>(id) * dim + first) / 2; }

    template <int N>
    void add(int32_t id, int64_t first, float* __restrict even, int64_t width = N) const {
        const uint8_t* row = at(id, first);
        const float scale = scales[id];
        float* __restrict odd = even + N / 2;
#ifdef ST_PARAGRAM_LOOKUP
        if (N % 32 == 0) {
            constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns about undefined values without a mask
            const __m512 factor = _mm512_set1_ps(scale);
            // The lookup reads only the lowest four bits.
            const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
            for (int d = 0; d < N / 2; d += 16) {
                const __m128i stored = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + d));
                const __m512i bytes = _mm512_maskz_cvtepu8_epi32(kAll, stored);
                const __m512 low = _mm512_maskz_permutexvar_ps(kAll, bytes, values);
                const __m512 high = _mm512_maskz_permutexvar_ps(kAll, _mm512_maskz_srli_epi32(kAll, bytes, 4), values);
                _mm512_storeu_ps(even + d, _mm512_fmadd_ps(factor, low, _mm512_loadu_ps(even + d)));
                _mm512_storeu_ps(odd + d, _mm512_fmadd_ps(factor, high, _mm512_loadu_ps(odd + d)));
            }
            return;
        }
#endif
        // In place, the upper bits are 16 times their value; moved to the top, the lower bits are 2^28 times theirs.
        const float of_low = scale * 3.7252902984619140625e-9f, of_high = scale * 0.0625f;  // 2^-28, 2^-4
#ifdef ST_PARAGRAM_HALF_PRECISION
        if (N % 16 == 0) {
            const __m256 low_factor = _mm256_set1_ps(of_low), high_factor = _mm256_set1_ps(of_high);
            const __m256i upper = _mm256_set1_epi32(-16);
            for (int d = 0; d < N / 2; d += 8) {
                const __m256i bytes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + d)));
                const __m256 low = _mm256_cvtepi32_ps(_mm256_slli_epi32(bytes, 28));
                const __m256 high = _mm256_cvtepi32_ps(_mm256_and_si256(bytes, upper));
                _mm256_storeu_ps(even + d, _mm256_fmadd_ps(low_factor, low, _mm256_loadu_ps(even + d)));
                _mm256_storeu_ps(odd + d, _mm256_fmadd_ps(high_factor, high, _mm256_loadu_ps(odd + d)));
            }
            return;
        }
#endif
        for (int64_t d = 0; d < width / 2; ++d) {
            const float low = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(row[d]) << 28));
            const float high = static_cast<float>(static_cast<int8_t>(row[d]) & -16);
#if defined(ST_PARAGRAM_HALF_PRECISION) || defined(__FP_FAST_FMAF)  // as for bytes
            even[d] = __builtin_fmaf(of_low, low, even[d]);
            odd[d] = __builtin_fmaf(of_high, high, odd[d]);
#else
            even[d] += of_low * low;
            odd[d] += of_high * high;
#endif
        }
    }
};

// Columns first .. first + width of a mean, with sums in registers if width is N. Rows are prefetched a few turns
// ahead, the first rows while the preceding columns are computed.
template <int N, class Table>
inline void mean_columns(const Table& table, const int32_t* ids, int64_t count, int64_t first, float* __restrict out,
                         int64_t width = N) {
    float sum[N] = {};
    const int64_t next = first + width < table.dim ? first + width : first;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t ahead = i + Table::kAhead;
        const auto* row = ahead < count ? table.at(ids[ahead], first)
                                        : table.at(ids[ahead < 2 * count ? ahead - count : i], next);
        ask_for(row, N / Table::kPerCell * sizeof *row);
        table.template add<N>(ids[i], first, sum, width);
    }
    const float scale = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
    if (Table::kPerCell == 1) {
        for (int64_t d = 0; d < width; ++d) out[first + d] = sum[d] * scale;
    } else {
        for (int64_t d = 0; d < width / 2; ++d) {
            out[first + 2 * d] = sum[d] * scale;
            out[first + 2 * d + 1] = sum[N / 2 + d] * scale;
        }
    }
}

template <class Table>
inline void mean(const Table& table, const int32_t* ids, int64_t count, float* __restrict out) {
    int64_t first = 0;
    for (; first + 96 <= table.dim; first += 96) mean_columns<96>(table, ids, count, first, out);
    for (; first + 32 <= table.dim; first += 32) mean_columns<32>(table, ids, count, first, out);
    for (; first + 8 <= table.dim; first += 8) mean_columns<8>(table, ids, count, first, out);
    // All at once: the sum of a single column would be one number, which newer compilers add up in several lanes.
    if (first < table.dim) mean_columns<8 - Table::kPerCell>(table, ids, count, first, out, table.dim - first);
}

void mean_f32(const float* table, int64_t dim, const int32_t* ids, int64_t count, float* __restrict out) {
    mean(Floats{table, dim}, ids, count, out);
}

void mean_f16(const uint16_t* table, int64_t dim, const int32_t* ids, int64_t count, float* __restrict out) {
    mean(Halves{table, dim}, ids, count, out);
}

void mean_i8(const int8_t* table, const float* scales, int64_t dim, const int32_t* ids, int64_t count,
             float* __restrict out) {
    mean(Bytes{table, scales, dim}, ids, count, out);
}

void mean_i4(const uint8_t* table, const float* scales, int64_t dim, const int32_t* ids, int64_t count,
             float* __restrict out) {
    mean(Nibbles{table, scales, dim}, ids, count, out);
}

void normalize(float* __restrict row, int64_t dim) {
    float square = 0;
    for (int64_t d = 0; d < dim; ++d) square += row[d] * row[d];
    const float length = __builtin_sqrtf(square);
    const float scale = 1.0f / (length > 1e-12f ? length : 1e-12f);
    for (int64_t d = 0; d < dim; ++d) row[d] *= scale;
}

bool is_finite(const float* row, int64_t dim) {
    int32_t largest = 0;  // as integers, absolute values have the same order, which one instruction compares
    for (int64_t d = 0; d < dim; ++d) {
        int32_t bits;
        __builtin_memcpy(&bits, row + d, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000;
}

void move(float* __restrict row, const float* __restrict moment, const float* __restrict square, int64_t dim,
          const SleptMove& slept) {
    const float weight0 = slept.weight[0], node0 = slept.node[0], weight1 = slept.weight[1], node1 = slept.node[1];
    if (weight1 != 0) {
        for (int64_t d = 0; d < dim; ++d) {
            const float root = __builtin_sqrtf(square[d]);
            row[d] -= moment[d] * weight0 / (root + node0) + moment[d] * weight1 / (root + node1);
        }
    } else if (weight0 != 0) {
        for (int64_t d = 0; d < dim; ++d) row[d] -= moment[d] * weight0 / (__builtin_sqrtf(square[d]) + node0);
    }
}

void decay(float* __restrict moment, float* __restrict square, int64_t dim, const Decay& decay) {
    const float of_moment = decay.moment, of_square = decay.square;
    for (int64_t d = 0; d < dim; ++d) {
        moment[d] *= of_moment;
        square[d] *= of_square;
    }
}

void adam(float* __restrict row, float* __restrict moment, float* __restrict square, int64_t dim,
          float* __restrict sum, const float* gradients, const int32_t* which, int64_t count, const Decay& decay,
          const AdamStep& step) {
    const auto of = [=](int64_t i) { return gradients + static_cast<int64_t>(which[i]) * dim; };
    const float* gradient = of(0);
    if (count > 1) {
        // Two rows at a time, each from start to end: most rows have few gradients, which are far away in memory.
        const float *one = of(0), *other = of(1);
        for (int64_t d = 0; d < dim; ++d) sum[d] = one[d] + other[d];
        int64_t i = 2;
        for (; i + 1 < count; i += 2) {
            one = of(i), other = of(i + 1);
            for (int64_t d = 0; d < dim; ++d) sum[d] += one[d] + other[d];
        }
        if (i < count) {
            one = of(i);
            for (int64_t d = 0; d < dim; ++d) sum[d] += one[d];
        }
        gradient = sum;
    }
    const float of_moment = decay.moment, of_square = decay.square;
    const float moment_share = step.moment_share, square_decay = step.square_decay, square_share = step.square_share;
    const float inverse_scale = 1.0f / step.root_scale, epsilon = step.epsilon, rate = step.rate;
    for (int64_t d = 0; d < dim; ++d) {
        const float g = gradient[d], left = of_moment * moment[d];
        const float m = left + moment_share * (g - left);
        const float v = square_decay * (of_square * square[d]) + square_share * (g * g);
        moment[d] = m;
        square[d] = v;
        row[d] -= rate * m / (__builtin_sqrtf(v) * inverse_scale + epsilon);
    }
}

// Dimensions first .. first + 64 of a dropout mask, 1 or 0. 32 random bits serve two dimensions, d and d + 32. Rounds
// and constants are those of C. Wellons's integer hash "lowbias32". The key's second half is mixed in between;
// otherwise, masks of keys with neighboring first halves would be shifted copies of each other.
inline void mask(uint64_t key, int64_t first, int32_t limit, float* __restrict keep) {
    constexpr uint32_t kStride = 0x9e3779b9u;
    const uint32_t high = static_cast<uint32_t>(key >> 32);
    const uint32_t start = static_cast<uint32_t>(key) + static_cast<uint32_t>(first / 2) * kStride;
    for (uint32_t w = 0; w < 32; ++w) {
        uint32_t x = start + w * kStride;
        x = (x ^ x >> 16) * 0x7feb352du;
        x ^= high;
        x = (x ^ x >> 15) * 0x846ca68bu;
        x ^= x >> 16;
        keep[w] = static_cast<int32_t>(x << 16) >= limit ? 1.0f : 0.0f;
        keep[w + 32] = static_cast<int32_t>(x) >= limit ? 1.0f : 0.0f;
    }
}

// Columns first .. first + width of sum_kept, at most 64, with sums in registers. Rows are prefetched here as well.
template <bool kWhole>
inline void sum_kept_columns(const float* rows, int64_t dim, const int32_t* which, const uint64_t* keys, int64_t count,
                             int32_t limit, float scale, int64_t first, float* __restrict out) {
    constexpr int64_t kAhead = 4;
    const int64_t width = kWhole ? 64 : dim - first;
    float sum[64] = {}, keep[64];
    for (int64_t i = 0; i < count; ++i) {
        if (i + kAhead < count) ask_for(rows + static_cast<int64_t>(which[i + kAhead]) * dim + first, 256);
        const float* row = rows + static_cast<int64_t>(which[i]) * dim + first;
        mask(keys[i], first, limit, keep);
        for (int64_t d = 0; d < width; ++d) sum[d] += keep[d] * row[d];
    }
    for (int64_t d = 0; d < width; ++d) out[first + d] = sum[d] * scale;
}

void sum_kept(const float* rows, int64_t dim, const int32_t* which, const uint64_t* keys, int64_t count, int32_t limit,
              float scale, float* __restrict out) {
    int64_t first = 0;
    for (; first + 64 <= dim; first += 64) {
        sum_kept_columns<true>(rows, dim, which, keys, count, limit, scale, first, out);
    }
    if (first < dim) sum_kept_columns<false>(rows, dim, which, keys, count, limit, scale, first, out);
}

// How a pair's loss enters the gradients: factors of s, t, n and o.
struct PairShares { float st, sn, to, s, t, n, o, loss; };

// Squares and products of four sentences.
struct PairSums { float ss, tt, nn, oo, st, sn, to; };

inline PairShares pair_shares(const PairSums& sum, float margin, float inverse_count) {
    const auto length = [](float square) {
        const float root = __builtin_sqrtf(square);
        return root > 1e-8f ? root : 1e-8f;
    };
    const float ls = length(sum.ss), lt = length(sum.tt), ln = length(sum.nn), lo = length(sum.oo);
    const float cos_st = sum.st / (ls * lt), cos_sn = sum.sn / (ls * ln), cos_to = sum.to / (lt * lo);
    const float from_s = margin - cos_st + cos_sn, from_t = margin - cos_st + cos_to;
    const float by_s = from_s > 0 ? inverse_count : 0.0f, by_t = from_t > 0 ? inverse_count : 0.0f;
    const float by_st = -(by_s + by_t);
    // d cos(x, y) / dx = y / (|x| |y|) - cos(x, y) x / |x|^2
    return {by_st / (ls * lt),
            by_s / (ls * ln),
            by_t / (lt * lo),
            -(by_st * cos_st + by_s * cos_sn) / (ls * ls),
            -(by_st * cos_st + by_t * cos_to) / (lt * lt),
            -by_s * cos_sn / (ln * ln),
            -by_t * cos_to / (lo * lo),
            by_s * from_s + by_t * from_t};
}

float pair_loss(const PairLoss& pair) {
    const float *__restrict s = pair.embedding[0], *__restrict t = pair.embedding[1];
    const float *__restrict n = pair.embedding[2], *__restrict o = pair.embedding[3];
    float ss = 0, tt = 0, nn = 0, oo = 0, st = 0, sn = 0, to = 0;
    for (int64_t d = 0; d < pair.dim; ++d) {
        ss += s[d] * s[d];
        tt += t[d] * t[d];
        nn += n[d] * n[d];
        oo += o[d] * o[d];
        st += s[d] * t[d];
        sn += s[d] * n[d];
        to += t[d] * o[d];
    }
    const PairShares by = pair_shares({ss, tt, nn, oo, st, sn, to}, pair.margin, pair.inverse_count);
    float *__restrict gs = pair.gradient[0], *__restrict gt = pair.gradient[1];
    float *__restrict gn = pair.gradient[2], *__restrict go = pair.gradient[3];
    const float is = pair.inverse_length[0], it = pair.inverse_length[1];
    const float in = pair.inverse_length[2], io = pair.inverse_length[3];
    for (int64_t d = 0; d < pair.dim; ++d) {
        gs[d] = is * (by.st * t[d] + by.sn * n[d] + by.s * s[d]);
        gt[d] = it * (by.st * s[d] + by.to * o[d] + by.t * t[d]);
        gn[d] = in * (by.sn * s[d] + by.n * n[d]);
        go[d] = io * (by.to * t[d] + by.o * o[d]);
    }
    return by.loss;
}

float quantize(const float* __restrict row, int64_t dim, int levels, int8_t* __restrict out) {
    constexpr int64_t kLanes = 16;  // of the maximum: the compiler cannot know that there is no NaN to keep
    float square = 0, largest = 0, lanes[kLanes] = {};
    int64_t whole = 0;
    for (; whole + kLanes <= dim; whole += kLanes) {
        for (int64_t l = 0; l < kLanes; ++l) {
            const float size = __builtin_fabsf(row[whole + l]);
            lanes[l] = size > lanes[l] ? size : lanes[l];
        }
    }
    for (int64_t l = 0; l < kLanes; ++l) largest = lanes[l] > largest ? lanes[l] : largest;
    for (; whole < dim; ++whole) {
        const float size = __builtin_fabsf(row[whole]);
        largest = size > largest ? size : largest;
    }
    for (int64_t d = 0; d < dim; ++d) square += row[d] * row[d];
    const float scale = largest > 0 ? static_cast<float>(levels) / largest : 0.0f;
    for (int64_t d = 0; d < dim; ++d) {
        out[d] = static_cast<int8_t>(static_cast<int32_t>(__builtin_nearbyintf(row[d] * scale)));
    }
    return square > 0 ? 1.0f / (scale * __builtin_sqrtf(square)) : 0.0f;
}

int64_t scan(const float* __restrict similarity, int64_t count, int32_t row, float* __restrict best_of_column,
             int32_t* __restrict row_of_column, float* largest) {
    constexpr int64_t kLanes = 32;
    float lanes[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = -4.0f;
    int64_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
        for (int64_t l = 0; l < kLanes; ++l) {
            const float value = similarity[c + l];
            const bool better = value > best_of_column[c + l];
            best_of_column[c + l] = better ? value : best_of_column[c + l];
            row_of_column[c + l] = better ? row : row_of_column[c + l];
            lanes[l] = value > lanes[l] ? value : lanes[l];
        }
    }
    float best = -4.0f;
    for (int64_t l = 0; l < kLanes; ++l) best = lanes[l] > best ? lanes[l] : best;
    for (; c < count; ++c) {
        const float value = similarity[c];
        if (value > best_of_column[c]) {
            best_of_column[c] = value;
            row_of_column[c] = row;
        }
        best = value > best ? value : best;
    }
    *largest = best;
    int64_t where = 0;
    while (where < count && similarity[where] != best) ++where;
    return where;
}

#ifdef ST_PARAGRAM_VNNI
// As below, in 32 bits: one vector is the 16 columns. Two sums of each row, so that additions do not wait.
void products(const uint8_t* rows, const int8_t* panel, int64_t depth, int32_t* sums) {
    __m512i part[4][2] = {};
    for (int64_t k = 0; k < depth; k += 8) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            const int r = i % 4, group = i / 4;
            int32_t four;
            __builtin_memcpy(&four, rows + r * depth + k + 4 * group, 4);
            const __m512i columns = _mm512_loadu_si512(panel + (k + 4 * group) * 16);
            part[r][group] = _mm512_dpbusd_epi32(part[r][group], _mm512_set1_epi32(four), columns);
        }
    }
    for (int r = 0; r < 4; ++r) _mm512_storeu_si512(sums + 16 * r, _mm512_add_epi32(part[r][0], part[r][1]));
}
#elif defined(ST_PARAGRAM_BYTE_PRODUCTS)
// Four rows by 16 columns at a time. For each group of four k, a panel holds these four of column 0, of column 1, ...:
// one vector is eight columns. maddubs adds neighboring products in 16 bits: four groups of 2 * 63 * 63 fit.
void products(const uint8_t* rows, const int8_t* panel, int64_t depth, int32_t* sums) {
    const __m256i ones = _mm256_set1_epi16(1), zero = _mm256_setzero_si256();
    __m256i* total = reinterpret_cast<__m256i*>(sums);
    for (int i = 0; i < 8; ++i) _mm256_storeu_si256(total + i, zero);
    for (int64_t k = 0; k < depth; k += 16) {
        __m256i part[4][2];
#pragma GCC unroll 4
        for (int group = 0; group < 4; ++group) {
            const __m256i* values = reinterpret_cast<const __m256i*>(panel + (k + 4 * group) * 16);
            const __m256i columns[2] = {_mm256_loadu_si256(values), _mm256_loadu_si256(values + 1)};
#pragma GCC unroll 4
            for (int r = 0; r < 4; ++r) {
                int32_t four;
                __builtin_memcpy(&four, rows + r * depth + k + 4 * group, 4);
                const __m256i row = _mm256_set1_epi32(four);
#pragma GCC unroll 2
                for (int c = 0; c < 2; ++c) {
                    const __m256i product = _mm256_maddubs_epi16(row, columns[c]);
                    part[r][c] = group ? _mm256_add_epi16(part[r][c], product) : product;
                    // Add now: otherwise the compiler delays all sums and spills the products.
                    asm volatile("" : "+x"(part[r][c]));
                }
            }
        }
        // Prefetch the rows of the next call.
        _mm_prefetch(reinterpret_cast<const char*>(rows + (4 + k / 16 % 4) * depth + k / 64 * 64), _MM_HINT_T0);
        for (int i = 0; i < 8; ++i) {
            const __m256i wide = _mm256_madd_epi16(part[i / 2][i % 2], ones);
            _mm256_storeu_si256(total + i, _mm256_add_epi32(_mm256_loadu_si256(total + i), wide));
        }
    }
}
#endif

// The first index that passes. The compiler does not vectorize a search that may end early, so whole blocks are checked
// first.
template <class Good>
inline int64_t first_good(int64_t begin, int64_t end, Good good) {
    constexpr int64_t kBlock = 64;
    for (; begin + kBlock <= end; begin += kBlock) {
        int32_t any = 0;
        for (int64_t i = 0; i < kBlock; ++i) any |= good(begin + i) ? 1 : 0;
        if (any) break;
    }
    while (begin < end && !good(begin)) ++begin;
    return begin;
}

int64_t first_above(const float* values, int64_t begin, int64_t end, float least) {
    return first_good(begin, end, [=](int64_t i) { return values[i] > least; });
}

int64_t first_better(const float* values, const float* least, int64_t begin, int64_t end) {
    return first_good(begin, end, [=](int64_t i) { return values[i] > least[i]; });
}

// Sums in 16 lanes, dimension d in lane d % 16, then folded in halves. Products of two floats are exact in double
// precision, so it does not matter whether an instruction set fuses them with the sums. `unpack` converts 16 numbers to
// floats, `convert` a single number.
template <class Number, class Unpack, class Convert>
inline double product_in_lanes(const float* __restrict vector, const Number* __restrict row, float length, int64_t dim,
                               Unpack unpack, Convert convert) {
    constexpr int64_t kLanes = 16;
    double lanes[kLanes] = {};
    int64_t d = 0;
    for (; d + kLanes <= dim; d += kLanes) {
        float values[kLanes];
        unpack(row + d, values);
        for (int64_t l = 0; l < kLanes; ++l) values[l] /= length;
        for (int64_t l = 0; l < kLanes; ++l) {
            lanes[l] += static_cast<double>(vector[d + l]) * static_cast<double>(values[l]);
        }
    }
    for (int64_t l = 0; d + l < dim; ++l) {
        lanes[l] += static_cast<double>(vector[d + l]) * static_cast<double>(convert(row[d + l]) / length);
    }
    for (int64_t width = kLanes / 2; width; width /= 2) {
        for (int64_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    }
    return lanes[0];
}

double product_f32(const float* vector, const float* row, float length, int64_t dim) {
    const auto convert = [](float value) { return value; };
    const auto unpack = [](const float* from, float* to) { __builtin_memcpy(to, from, 16 * sizeof(float)); };
    return product_in_lanes(vector, row, length, dim, unpack, convert);
}

double product_f16(const float* vector, const uint16_t* row, float length, int64_t dim) {
    const auto convert = [](uint16_t value) { return half_to_float(value); };
#ifdef ST_PARAGRAM_HALF_PRECISION
    const auto unpack = [](const uint16_t* from, float* to) {
        for (int i = 0; i < 16; i += 8) {
            const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
        }
    };
#else
    const auto unpack = [](const uint16_t* from, float* to) {
        for (int i = 0; i < 16; ++i) to[i] = half_to_float(from[i]);
    };
#endif
    return product_in_lanes(vector, row, length, dim, unpack, convert);
}

double product_i8(const float* vector, const int8_t* row, float length, int64_t dim) {
    const auto convert = [](int8_t value) { return static_cast<float>(value); };
    const auto unpack = [](const int8_t* from, float* to) {
        for (int i = 0; i < 16; ++i) to[i] = static_cast<float>(from[i]);
    };
    return product_in_lanes(vector, row, length, dim, unpack, convert);
}

}  // namespace
