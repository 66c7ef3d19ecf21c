// Devices and contexts: ibv_get_device_list(3), ibv_open_device(3), ibv_query_device(3),
// ibv_query_port(3), ibv_query_gid(3), ibv_query_pkey(3).
#define _GNU_SOURCE
#include "engine.h"
#include "_cgo_export.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_get_device_list

bool softrnic_forked;

static struct device *devices;
static int device_count = -1; // not asked yet
static pthread_mutex_t devices_mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts; // the open ones

// note_fork is called in children by fork, where another thread of the parent may have held the mutexes.
static void note_fork(void)
{
	softrnic_forked = true;
	pthread_mutex_init(&devices_mutex, NULL);
	pthread_mutex_init(&contexts_mutex, NULL);
}

// The runtime does not survive a fork, also if no device was opened.
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, note_fork); }

static void *close_devices(void *unused)
{
	go_close_devices();
	return unused;
}

static _Atomic bool ending;
static pthread_t ending_thread;

bool ends_elsewhere(void) { return atomic_load(&ending) && !pthread_equal(ending_thread, pthread_self()); }

// close_at_exit closes the devices at the end of the process, after the functions that the program gave to atexit. A
// handler of a signal that calls exit may have interrupted this thread in a call of Go, which cannot be entered once
// more: another thread closes them then. It has a second, since the interrupted call may hold a lock, and later calls
// fail as in a child by fork.
__attribute__((destructor)) static void close_at_exit(void)
{
	stack_t stack;
	pthread_t thread;
	struct timespec limit;
	if (softrnic_forked || device_count < 0)
		return;
	ending_thread = pthread_self();
	atomic_store(&ending, true);
	if (sigaltstack(NULL, &stack) || !(stack.ss_flags & SS_ONSTACK)) {
		go_close_devices();
		return;
	}
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec++;
	if (!pthread_create(&thread, NULL, close_devices, NULL))
		pthread_timedjoin_np(thread, NULL, &limit);
	softrnic_forked = true;
}

// open_devices opens the devices at the first use, and returns their number.
static int open_devices(void)
{
	if (softrnic_forked)
		return 0;
	pthread_mutex_lock(&devices_mutex);
	if (device_count < 0) {
		restore_signals();
		int count = go_open_devices();
		devices = calloc(count ? count : 1, sizeof *devices);
		for (int i = 0; i < count; i++) {
			struct ibv_device *device = &devices[i].device;
			devices[i].index = i;
			device->node_type = IBV_NODE_CA;
			device->transport_type = IBV_TRANSPORT_IB;
			snprintf(device->name, sizeof device->name, "softrnic%d", i);
			snprintf(device->dev_name, sizeof device->dev_name, "uverbs%d", i);
			snprintf(device->dev_path, sizeof device->dev_path, "/sys/class/infiniband_verbs/uverbs%d", i);
			snprintf(device->ibdev_path, sizeof device->ibdev_path, "/sys/class/infiniband/softrnic%d", i);
		}
		device_count = count;
	}
	pthread_mutex_unlock(&devices_mutex);
	return device_count;
}

struct ibv_device **API(ibv_get_device_list)(int *count)
{
	int n = open_devices();
	struct ibv_device **list = calloc(n + 1, sizeof *list);
	if (!list)
		return NULL;
	for (int i = 0; i < n; i++)
		list[i] = &devices[i].device;
	if (count)
		*count = n;
	return list;
}

void API(ibv_free_device_list)(struct ibv_device **list) { free(list); }

// softrnic_paths_root returns the directory whose "infiniband" stands for
// /sys/class/infiniband, and so on, or an empty text if there is none.
const char *API(paths_root)(void)
{
	static char root[256];
	if (open_devices() > 0 && !root[0])
		go_paths_root(root, sizeof root);
	return root;
}

const char *API(ibv_get_device_name)(struct ibv_device *device) { return device->name; }

__be64 API(ibv_get_device_guid)(struct ibv_device *device)
{
	return softrnic_forked ? 0 : htobe64(go_device_guid(((struct device *)device)->index));
}

int API(ibv_get_device_index)(struct ibv_device *device) { return ((struct device *)device)->index; }

int API(ibv_query_device)(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = context_of(context)->attr; // also in a child by fork
	return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	if (input && input->comp_mask)
		return fail(EINVAL);
	if (size < sizeof attr->orig_attr)
		return fail(EINVAL);
	memset(attr, 0, size);
	const uint32_t paging = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	const uint32_t paging_uc = paging | IBV_ODP_SUPPORT_WRITE;
	const uint32_t paging_rc = paging_uc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
		ODP_SUPPORT_FLUSH_AND_WRITE;
	struct ibv_device_attr_ex whole = {
		.odp_caps = {IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, {paging_rc, paging_uc, paging}},
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, // kHz: times are in nanoseconds
		.max_dm_size = MAX_DM_SIZE,
		.phys_port_cnt_ex = 1,
	};
	softrnic_ibv_query_device(context, &whole.orig_attr);
	whole.device_cap_flags_ex = whole.orig_attr.device_cap_flags | DEVICE_FLUSH_AND_WRITE;
	memcpy(attr, &whole, size < sizeof whole ? size : sizeof whole);
	return 0;
}

// query_rt_values reads the clock of completions. All of it is in tv_nsec, as with the drivers of adapters.
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	if (softrnic_forked)
		return fail(EIO);
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return fail(EINVAL);
	uint64_t now;
	int error = go_query_clock(context_of(context)->handle, &now);
	if (!error)
		values->raw_clock = (struct timespec){.tv_nsec = now};
	return fail(error);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr whole;
	memset(&whole, 0, sizeof whole);
	int error = softrnic_forked ? EIO : go_query_port(context_of(context)->handle, port, &whole);
	if (error)
		return fail(error);
	memset(attr, 0, size);
	memcpy(attr, &whole, size < sizeof whole ? size : sizeof whole);
	return 0;
}

int API(ibv_query_port)(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int API(ibv_query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	uint32_t interface;
	int error = softrnic_forked ? EIO : go_query_gid(context_of(context)->handle, port, index, gid->raw, &interface);
	return error ? fail(error), -1 : 0;
}

int API(_ibv_query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			   uint32_t flags, size_t size)
{
	struct ibv_gid_entry whole = {.gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2};
	if (flags)
		return fail(EOPNOTSUPP);
	int error = softrnic_forked ? EIO :
		go_query_gid(context_of(context)->handle, port, index, whole.gid.raw, &whole.ndev_ifindex);
	if (error)
		return fail(port == 1 && !softrnic_forked ? ENODATA : error);
	memset(entry, 0, size);
	memcpy(entry, &whole, size < sizeof whole ? size : sizeof whole);
	return 0;
}

ssize_t API(_ibv_query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
				  uint32_t flags, size_t size)
{
	if (flags)
		return -EOPNOTSUPP;
	if (!max)
		return -EINVAL;
	int error = softrnic__ibv_query_gid_ex(context, 1, 0, entries, 0, size);
	return error ? -error : 1;
}

// ibv_query_gid_type is a private function of rdma-core that perftest and UCX call.
int API(ibv_query_gid_type)(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	union ibv_gid gid;
	if (softrnic_ibv_query_gid(context, port, index, &gid))
		return -1;
	*type = 1; // IBV_GID_TYPE_SYSFS_ROCE_V2
	return 0;
}

int API(ibv_query_pkey)(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(0xffff);
	return 0;
}

int API(ibv_get_pkey_index)(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	return port == 1 && pkey == htobe16(0xffff) ? 0 : -1;
}

int API(ibv_read_sysfs_file)(const char *directory, const char *file, char *text, size_t size)
{
	char path[512];
	const char *class = "/sys/class/";
	if (!strncmp(directory, class, strlen(class)) && softrnic_paths_root()[0])
		snprintf(path, sizeof path, "%s/%s/%s", softrnic_paths_root(), directory + strlen(class), file);
	else
		snprintf(path, sizeof path, "%s/%s", directory, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	int n = fread(text, 1, size ? size - 1 : 0, f);
	fclose(f);
	if (n > 0 && text[n - 1] == '\n')
		n--;
	if (size)
		text[n] = 0;
	return n;
}

const char *API(ibv_get_sysfs_path)(void) { return "/sys"; }

static int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	(void)qp, (void)attr;
	return EOPNOTSUPP;
}

static struct ibv_context *open_context(struct ibv_device *device, struct context *original)
{
	if (softrnic_forked)
		return fail_null(EIO);
	struct context *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	int error = event_queue_open(&c->async);
	if (error) {
		free(c);
		return fail_null(error);
	}
	int cmd_fd = memfd_create("softrnic", MFD_CLOEXEC); // its inode identifies the context
	error = cmd_fd < 0 ? errno : go_open_context(((struct device *)device)->index, c, &c->handle);
	if (error) {
		if (cmd_fd >= 0)
			close(cmd_fd);
		event_queue_close(&c->async);
		free(c);
		return fail_null(error);
	}
	go_query_device(c->handle, &c->attr);
	struct verbs_context *v = &c->verbs;
	v->sz = sizeof *v;
	v->query_port = query_port;
	v->query_device_ex = query_device_ex;
	v->query_rt_values = query_rt_values;
	v->create_qp_ex = create_qp_ex;
	v->create_cq_ex = create_cq_ex;
	v->create_srq_ex = create_srq_ex;
	v->get_srq_num = get_srq_num;
	v->modify_cq = modify_cq;
	v->modify_qp_rate_limit = modify_qp_rate_limit;
	v->alloc_td = alloc_td;
	v->dealloc_td = dealloc_td;
	v->alloc_parent_domain = alloc_parent_domain;
	install_extras(v);
	struct ibv_context *context = &v->context;
	context->device = device;
	context->cmd_fd = cmd_fd;
	context->async_fd = c->async.fd;
	context->num_comp_vectors = 1;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->mutex, NULL);
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	context->ops.alloc_mw = alloc_mw;
	context->ops.bind_mw = bind_mw;
	context->ops.dealloc_mw = dealloc_mw;
	c->users = 1;
	c->original = original;
	pthread_mutex_lock(&contexts_mutex);
	c->next = contexts;
	contexts = c;
	pthread_mutex_unlock(&contexts_mutex);
	return context;
}

struct ibv_context *API(ibv_open_device)(struct ibv_device *device) { return open_context(device, NULL); }

// ibv_import_device makes a context for a duplicate of a context's cmd_fd, and takes over the descriptor. Objects of
// the original refer to its event queue, so it is kept.
struct ibv_context *API(ibv_import_device)(int cmd_fd)
{
	struct stat wanted, found;
	if (fstat(cmd_fd, &wanted))
		return NULL;
	pthread_mutex_lock(&contexts_mutex);
	struct context *c = contexts;
	while (c && (fstat(c->verbs.context.cmd_fd, &found) || found.st_ino != wanted.st_ino || found.st_dev != wanted.st_dev))
		c = c->next;
	if (c && c->original)
		c = c->original;
	if (c)
		c->users++;
	pthread_mutex_unlock(&contexts_mutex);
	if (!c)
		return fail_null(EOPNOTSUPP); // of another process
	struct ibv_context *context = open_context(c->verbs.context.device, c);
	if (context) {
		dup3(cmd_fd, context->cmd_fd, O_CLOEXEC);
		close(cmd_fd);
	} else {
		pthread_mutex_lock(&contexts_mutex);
		c->users--;
		pthread_mutex_unlock(&contexts_mutex);
	}
	return context;
}

// release_context frees a context that is neither open nor the original of one, with the objects that are left in it.
static void release_context(struct context *c)
{
	pthread_mutex_lock(&contexts_mutex);
	bool last = --c->users == 0;
	pthread_mutex_unlock(&contexts_mutex);
	if (!last)
		return;
	if (!softrnic_forked)
		go_close_context(c->handle);
	event_queue_close(&c->async);
	retire(c);
}

int API(ibv_close_device)(struct ibv_context *context)
{
	struct context *c = context_of(context), *original = c->original;
	pthread_mutex_lock(&contexts_mutex);
	struct context **link = &contexts;
	while (*link && *link != c)
		link = &(*link)->next;
	bool open = *link;
	if (open)
		*link = c->next;
	pthread_mutex_unlock(&contexts_mutex);
	if (!open)
		return fail(EINVAL); // closed before
	close(context->cmd_fd);
	release_context(c);
	if (original)
		release_context(original);
	return 0;
}
