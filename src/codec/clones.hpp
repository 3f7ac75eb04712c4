// Functions compiled twice, with and without AVX2; the loader takes what the machine has. Their results are the same to
// the bit: whole numbers, or single operations of IEEE arithmetic. Not by Clang, which cannot inline into such
// functions; not where a sanitizer would look into the choice, which is made before it is ready; and not where
// DIAPAUSE_ONE_CLONE says so, which tests compare with.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(DIAPAUSE_ONE_CLONE) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DIAPAUSE_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define DIAPAUSE_CLONES
#endif
