/* The event channels of librdmacm. It opens /dev/infiniband/rdma_cm, checks that this is a character device, and writes
 * commands to it (<rdma/rdma_user_cm.h>). The engine opens a socket instead, whose descriptor is marked here, and executes
 * the commands. The program's librdmacm with its rsockets is that of the system. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "channel.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/rdma_cm"
#define NETLINK_RDMA 20

enum { max_channel = 1 << 16, bits = 8 * sizeof(unsigned) };

static unsigned _Atomic marks[max_channel / bits]; /* one bit a descriptor */
static int _Atomic any;                            /* a descriptor was marked once */

static ssize_t (*_Atomic engine_write)(int, const void *, size_t);

static int is_marked(int fd)
{
	if (!atomic_load_explicit(&any, memory_order_relaxed) || fd < 0 || fd >= max_channel)
		return 0;
	return atomic_load_explicit(&marks[fd / bits], memory_order_acquire) >> fd % bits & 1;
}

static void unmark(int fd) { atomic_fetch_and(&marks[fd / bits], ~(1u << fd % bits)); }

/* engine_function returns a function of the engine, or NULL. */
static void *engine_function(const char *name)
{
	void *engine = softrnic_engine();
	return engine ? dlsym(engine, name) : NULL;
}

int softrnic_open_channel(const char *path, int flags)
{
	if (!path || path[0] != '/' || strcmp(path, DEVICE) != 0)
		return NO_CHANNEL;
	int saved = errno;
	int (*open_channel)(int) = (int (*)(int))engine_function("softrnic_cm_open");
	ssize_t (*write_channel)(int, const void *, size_t) =
		(ssize_t(*)(int, const void *, size_t))engine_function("softrnic_cm_write");
	errno = saved;
	if (!open_channel || !write_channel)
		return NO_CHANNEL;
	int fd = open_channel(flags);
	if (fd >= max_channel) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0) {
		atomic_store(&engine_write, write_channel);
		atomic_fetch_or(&marks[fd / bits], 1u << fd % bits);
		atomic_store(&any, 1);
	}
	return fd;
}

typedef ssize_t (*write_function)(int, const void *, size_t);

static void *next_write, *next_socket; /* written with equal values by all threads */

static void *find_next(void **slot, const char *name)
{
	void *function = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if (!function) {
		function = dlsym(RTLD_NEXT, name);
		__atomic_store_n(slot, function, __ATOMIC_RELAXED);
	}
	return function;
}

__attribute__((constructor)) static void find_all(void)
{
	find_next(&next_write, "write");
	find_next(&next_socket, "socket");
}

PUBLIC ssize_t write(int fd, const void *buffer, size_t count)
{
	if (is_marked(fd)) {
		ssize_t n = atomic_load(&engine_write)(fd, buffer, count);
		if (n != -2)
			return n;
		unmark(fd); /* the channel was closed, and the descriptor is another file's */
	}
	write_function next = (write_function)find_next(&next_write, "write");
	return next ? next(fd, buffer, count) : syscall(SYS_write, fd, buffer, count);
}

/* Without netlink, librdmacm takes the device by its path, also where the kernel has RDMA devices of its own. */
PUBLIC int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		const char *mode = secure_getenv("SOFTRNIC_DROPIN");
		if (!mode || strcmp(mode, "off") != 0) {
			errno = EPROTONOSUPPORT;
			return -1;
		}
	}
	int (*next)(int, int, int) = (int (*)(int, int, int))find_next(&next_socket, "socket");
	return next ? next(domain, type, protocol) : (int)syscall(SYS_socket, domain, type, protocol);
}

/* The functions that tell a character device from a socket. */
#define FSTAT_FUNCTIONS(F)                                                                                             \
	F(fstat, (int fd, struct stat *s), (fd, s), dlsym(RTLD_NEXT, "fstat"))                                         \
	F(fstat64, (int fd, struct stat64 *s), (fd, s), dlsym(RTLD_NEXT, "fstat64"))                                   \
	F(__fxstat, (int version, int fd, struct stat *s), (version, fd, s), dlvsym(RTLD_NEXT, "__fxstat", FIRST))     \
	F(__fxstat64, (int version, int fd, struct stat64 *s), (version, fd, s), dlvsym(RTLD_NEXT, "__fxstat64", FIRST))

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#endif

#define DECLARE_FSTAT(name, parameters, arguments, found) int name parameters;
FSTAT_FUNCTIONS(DECLARE_FSTAT)

#define DEFINE_FSTAT(name, parameters, arguments, found)                                                               \
	PUBLIC int name parameters                                                                                     \
	{                                                                                                              \
		static void *next;                                                                                     \
		__typeof__(&name) function = (__typeof__(&name))__atomic_load_n(&next, __ATOMIC_RELAXED);              \
		if (!function) {                                                                                       \
			function = (__typeof__(&name))found;                                                           \
			__atomic_store_n(&next, (void *)function, __ATOMIC_RELAXED);                                   \
		}                                                                                                      \
		if (!function) {                                                                                       \
			errno = ENOSYS;                                                                                \
			return -1;                                                                                     \
		}                                                                                                      \
		int result = function arguments;                                                                       \
		if (result == 0 && is_marked(fd) && S_ISSOCK(s->st_mode))                                              \
			s->st_mode = S_IFCHR | (s->st_mode & ~S_IFMT);                                                 \
		return result;                                                                                         \
	}
FSTAT_FUNCTIONS(DEFINE_FSTAT)
