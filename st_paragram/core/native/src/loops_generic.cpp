// The loops for the oldest processor that the compiler targets, and the choice among the three versions.
#include "loops.h"

#include <cstdlib>
#include <cstring>

namespace st_paragram {

#include "loops_body.h"

extern const Loops loops_generic = {"generic", mean_f32, mean_f16, mean_i8, mean_i4, normalize, is_finite, move, decay,
    adam, sum_kept, pair_loss, quantize, nullptr, scan, first_above, first_better, product_f32, product_f16, product_i8, ask_for};

#if defined(__x86_64__) && defined(__GNUC__)
static const Loops* choose() {
    const char* wish = std::getenv("ST_PARAGRAM_INSTRUCTIONS");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vnni");
    if (wish && !std::strcmp(wish, "generic")) return &loops_generic;
    if (avx512 && !(wish && !std::strcmp(wish, "avx2"))) return &loops_avx512;
    return avx2 ? &loops_avx2 : &loops_generic;
}
#else
static const Loops* choose() { return &loops_generic; }
#endif

const Loops& loops() {
    static const Loops* const chosen = choose();
    return *chosen;
}

}  // namespace st_paragram
