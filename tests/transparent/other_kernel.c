/* Preloaded into `diapause restart`: the kernel's code in processes seems to be another than that
 * of the image, in a byte that nobody needs. */
#define _GNU_SOURCE
#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t process_vm_readv(pid_t process, const struct iovec* to, unsigned long to_count,
                         const struct iovec* from, unsigned long from_count, unsigned long flags) {
  const ssize_t bytes =
      syscall(SYS_process_vm_readv, process, to, to_count, from, from_count, flags);
  const int is_own_code = process == getpid() && to_count == 1 && from_count == 1 &&
                          (unsigned long)from->iov_base == getauxval(AT_SYSINFO_EHDR);
  if (is_own_code && bytes > EI_PAD) ((unsigned char*)to->iov_base)[EI_PAD] ^= 1;
  return bytes;
}
