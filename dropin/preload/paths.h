/* Paths of RDMA devices that programs look at beside libibverbs. */
#ifndef SOFTRNIC_PATHS_H
#define SOFTRNIC_PATHS_H

#include <stddef.h>

/* softrnic_redirect returns path, or the path in the engine's tree that stands for it, stored in the buffer. It leaves
 * errno alone. */
const char *softrnic_redirect(const char *path, char *buffer, size_t size);

#endif
