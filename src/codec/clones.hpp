// Functions compiled twice, with and without AVX2; the loader takes what the machine has. Their results are the same to
// the bit: whole numbers, or single operations of IEEE arithmetic. Not where a sanitizer would look into the choice,
// which is made before it is ready; and not where DIAPAUSE_ONE_CLONE says so, which tests compare with.
#pragma once

#if defined(__has_feature)
#define DIAPAUSE_HAS_FEATURE(name) __has_feature(name)
#else
#define DIAPAUSE_HAS_FEATURE(name) 0
#endif

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(DIAPAUSE_ONE_CLONE) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !DIAPAUSE_HAS_FEATURE(address_sanitizer) &&                                       \
    !DIAPAUSE_HAS_FEATURE(thread_sanitizer)
#define DIAPAUSE_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define DIAPAUSE_CLONES
#endif
