// Marks functions that are compiled twice, with and without AVX2; the loader chooses by processor.
// Their results are bitwise equal, because they use integers or single operations of IEEE
// arithmetic. The mark is empty with Clang, which cannot inline into such functions, with
// sanitizers, because the choice is made before they are initialized, and with DIAPAUSE_ONE_CLONE,
// which tests compare with.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
    !defined(DIAPAUSE_ONE_CLONE) && !defined(__SANITIZE_ADDRESS__) &&       \
    !defined(__SANITIZE_THREAD__)
#define DIAPAUSE_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define DIAPAUSE_CLONES
#endif
