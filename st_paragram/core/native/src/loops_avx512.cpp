// The loops for x86 processors with AVX-512 (F, BW, DQ, VL, VNNI).
#include "loops.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define ST_PARAGRAM_HALF_PRECISION
#define ST_PARAGRAM_BYTE_PRODUCTS
#define ST_PARAGRAM_VNNI
#define ST_PARAGRAM_LOOKUP
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,prefer-vector-width=512")
#endif

namespace st_paragram {

#include "loops_body.h"

extern const Loops loops_avx512 = {"avx512", mean_f32, mean_f16, mean_i8, mean_i4, normalize, is_finite, move, decay,
    adam, sum_kept, pair_loss, quantize, products, scan, first_above, first_better, product_f32, product_f16, product_i8, ask_for};

}  // namespace st_paragram

#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
