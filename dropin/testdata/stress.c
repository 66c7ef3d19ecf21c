// Threads that post and poll on many queue pairs at once, with a fork in the middle.
//
// usage: stress THREADS QPS REQUESTS: QPS queue pairs in pairs, divided among the threads; REQUESTS work requests in all,
// each a write, a send, a read or an atomic operation. Half-way the first thread forks: the child gets errors and ends,
// the parent goes on. Checks the number of completions and the sums of the atomic operations.
#include "pair.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 16, SIZE = 256 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char *memory;
static int threads, pairs;
static long requests; // of each thread
static atomic_long completions, expected;
static int child_status = -1;

// A worker owns the pairs [first, last), and one completion queue.
struct worker {
	pthread_t thread;
	int index, first, last;
	struct ibv_cq *cq;
	struct ibv_qp **qps; // two a pair
	int *pending;        // requests of a pair without a completion
};

// slot returns the memory of a queue pair.
static char *slot(struct worker *w, int qp) { return memory + ((size_t)2 * w->first + qp) * SIZE; }

static void prepare(struct worker *w)
{
	int count = w->last - w->first;
	CHECK((w->cq = ibv_create_cq(context, count * 2 * DEPTH * 2, w, NULL, 0)));
	CHECK((w->qps = calloc(2 * count, sizeof *w->qps)));
	CHECK((w->pending = calloc(count, sizeof *w->pending)));
	for (int i = 0; i < 2 * count; i++)
		CHECK((w->qps[i] = create_qp(pd, w->cq, NULL, IBV_QPT_RC, DEPTH)));
	for (int i = 0; i < count; i++)
		connect_qps(w->qps[2 * i], w->qps[2 * i + 1]);
}

// post posts request number n on a pair: the receive for a send as well. Returns the completions to come.
static int post(struct worker *w, int pair, long n)
{
	struct ibv_sge sge = {(uintptr_t)slot(w, 2 * pair), 64, mr->lkey};
	struct ibv_send_wr wr, *bad;
	memset(&wr, 0, sizeof wr);
	wr.wr_id = pair;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	uint64_t remote = (uintptr_t)slot(w, 2 * pair + 1);
	int expected = 1;
	switch (n % 4) {
	case 0:
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = mr->rkey;
		break;
	case 1:
		wr.opcode = IBV_WR_SEND;
		if (n % 8 == 1) {
			wr.send_flags |= IBV_SEND_INLINE;
			sge.length = 16;
		}
		struct ibv_sge to = {remote + 64, 64, mr->lkey};
		struct ibv_recv_wr recv = {pair, NULL, &to, 1}, *bad_recv;
		CHECK(!ibv_post_recv(w->qps[2 * pair + 1], &recv, &bad_recv));
		expected = 2;
		break;
	case 2:
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = remote + 64;
		wr.wr.rdma.rkey = mr->rkey;
		break;
	default:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		sge.addr += 128;
		sge.length = 8;
		wr.wr.atomic.remote_addr = remote + 128;
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	CHECK(!ibv_post_send(w->qps[2 * pair], &wr, &bad));
	return expected;
}

static void poll(struct worker *w)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(w->cq, 32, wc);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "thread %d pair %d: %s\n", w->index, (int)wc[i].wr_id, ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		w->pending[wc[i].wr_id]--;
	}
	atomic_fetch_add(&completions, n);
}

// fork_child makes a child that tries to use the device.
static void fork_child(struct worker *w)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		struct ibv_wc wc;
		alarm(60);
		int error = post_write(w->qps[0], mr, mr, 8, 0);
		int n = ibv_poll_cq(w->cq, 1, &wc);
		struct ibv_pd *none = ibv_alloc_pd(context);
		_exit(error == EIO && n < 0 && !none ? 42 : 1);
	}
	CHECK(waitpid(child, &child_status, 0) == child);
}

static void *work(void *argument)
{
	struct worker *w = argument;
	int count = w->last - w->first;
	for (long n = 0; n < requests; n++) {
		int pair = n % count;
		while (w->pending[pair] >= DEPTH - 1)
			poll(w);
		int more = post(w, pair, n / count);
		w->pending[pair] += more;
		atomic_fetch_add(&expected, more);
		if (w->index == 0 && n == requests / 2)
			fork_child(w);
		if (n % 8 == 0)
			poll(w);
	}
	for (int pair = 0; pair < count; pair++)
		while (w->pending[pair])
			poll(w);
	return NULL;
}

static void finish(struct worker *w)
{
	int count = w->last - w->first;
	for (int pair = 0; pair < count; pair++) {
		// Every fourth request of a pair was an addition.
		long posted = requests / count + (pair < requests % count);
		uint64_t sum;
		memcpy(&sum, slot(w, 2 * pair + 1) + 128, sizeof sum);
		CHECK((long)sum == posted / 4);
	}
	for (int i = 0; i < 2 * count; i++)
		CHECK(!ibv_destroy_qp(w->qps[i]));
	CHECK(!ibv_destroy_cq(w->cq));
	free(w->qps);
	free(w->pending);
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	threads = atoi(argv[1]);
	pairs = atoi(argv[2]) / 2;
	requests = atol(argv[3]) / threads;
	CHECK(threads > 0 && pairs >= threads);
	context = open_first();
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((memory = aligned_alloc(4096, ((size_t)pairs * 2 * SIZE + 4095) & ~(size_t)4095)));
	memset(memory, 0, (size_t)pairs * 2 * SIZE);
	CHECK((mr = ibv_reg_mr(pd, memory, (size_t)pairs * 2 * SIZE, ALL_ACCESS)));
	struct worker *workers = calloc(threads, sizeof *workers);
	CHECK(workers);
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){.index = i, .first = pairs * i / threads, .last = pairs * (i + 1) / threads};
		prepare(&workers[i]);
	}
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	for (int i = 0; i < threads; i++)
		CHECK(!pthread_join(workers[i].thread, NULL));
	for (int i = 0; i < threads; i++)
		finish(&workers[i]);
	free(workers);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	free(memory);
	CHECK(WIFEXITED(child_status));
	CHECK(atomic_load(&completions) == atomic_load(&expected));
	printf("child %d\n", WEXITSTATUS(child_status));
	return 0;
}
