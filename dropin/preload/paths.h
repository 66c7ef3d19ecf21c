/* Paths of RDMA devices that programs look at beside libibverbs. */
#ifndef SOFTRNIC_PATHS_H
#define SOFTRNIC_PATHS_H

#include <stddef.h>

/* softrnic_redirect returns path, relative to the directory of a descriptor or AT_FDCWD, or the path in the engine's tree
 * that stands for it, stored in the buffer. It leaves errno alone. */
const char *softrnic_redirect(int dir, const char *path, char *buffer, size_t size);

#endif
