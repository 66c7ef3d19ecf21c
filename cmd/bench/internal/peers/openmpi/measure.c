// Measures the operations of the MPI experiments over any MPI library. Rank 0
// prints one number. Consecutive operations are not synchronized. Collectives
// are measured one by one with an unmeasured barrier between, averaged over
// ranks, like in the Intel benchmarks.
//
//	measure latency BYTES ROUNDS      half a round trip of ranks 0 and 1, us
//	measure put|get BYTES ROUNDS      one operation at a time on rank 1's window until completion, us
//	measure bandwidth BYTES WINDOWS   from rank 0 to 1, windows of 64 sends, MB/s
//	measure put-bandwidth|get-bandwidth BYTES WINDOWS   the same, one-sided
//	measure rate BYTES WINDOWS        message rate of windows of 64 sends, in millions per second
//	measure allreduce|allgather|alltoall BYTES ROUNDS   us
//	measure barrier BYTES ROUNDS      consecutive barriers, us
//	measure late-barrier MS ROUNDS    the last rank is MS late: processor time of another, in percent
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define WINDOW 64

static int rank, size, bytes;
static char *out, *in;
static MPI_Win win;

static void pingpong(void) {
	if (rank == 0) {
		MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(in, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	}
}

static void window(void) {
	MPI_Request r[WINDOW];
	if (rank > 1)
		return;
	for (int i = 0; i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &r[i]);
		else
			MPI_Irecv(in, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &r[i]);
	}
	MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(in, 4, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(out, 4, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

// Rank 1 does not participate in one-sided operations: it waits in the barrier behind them.
static void putin(int n) {
	if (rank != 0)
		return;
	for (int i = 0; i < n; i++)
		MPI_Put(out, bytes, MPI_CHAR, 1, (MPI_Aint)i * bytes, bytes, MPI_CHAR, win);
	MPI_Win_flush(1, win);
}

static void getfrom(int n) {
	if (rank != 0)
		return;
	for (int i = 0; i < n; i++)
		MPI_Get(in, bytes, MPI_CHAR, 1, (MPI_Aint)i * bytes, bytes, MPI_CHAR, win);
	MPI_Win_flush(1, win);
}

static void put(void) { putin(1); }
static void get(void) { getfrom(1); }
static void putwindow(void) { putin(WINDOW); }
static void getwindow(void) { getfrom(WINDOW); }

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void latebarrier(void) {
	if (rank == size - 1)
		usleep((useconds_t)bytes * 1000);
	MPI_Barrier(MPI_COMM_WORLD);
}

// processor returns the processor time of this process in seconds.
static double processor(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void allreduce(void) { MPI_Allreduce(out, in, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void allgather(void) { MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD); }
static void alltoall(void) { MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD); }

static const struct test {
	const char *name;
	void (*f)(void);
	enum { HALF, WHOLE, RATE, MBPS, ALONE, PROCESSOR } kind; // ALONE: with a barrier after each
	int places;                                   // slots of BYTES in rank 1's window
} tests[] = {
	{"latency", pingpong, HALF, 0},
	{"bandwidth", window, MBPS, 0},
	{"rate", window, RATE, 0},
	{"put", put, WHOLE, 1},
	{"get", get, WHOLE, 1},
	{"put-bandwidth", putwindow, MBPS, WINDOW},
	{"get-bandwidth", getwindow, MBPS, WINDOW},
	{"barrier", barrier, WHOLE, 0},
	{"late-barrier", latebarrier, PROCESSOR, 0},
	{"allreduce", allreduce, ALONE, 0},
	{"allgather", allgather, ALONE, 0},
	{"alltoall", alltoall, ALONE, 0},
};

// repeat returns the time of the given number of rounds in seconds.
static double repeat(const struct test *t, int rounds) {
	double sum = 0, start = MPI_Wtime();
	for (int i = 0; i < rounds; i++) {
		double one = MPI_Wtime();
		t->f();
		if (t->kind == ALONE) {
			sum += MPI_Wtime() - one;
			MPI_Barrier(MPI_COMM_WORLD);
		}
	}
	if (t->kind != ALONE)
		return MPI_Wtime() - start;
	double all = 0;
	MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return all / size;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	const struct test *t = NULL;
	for (size_t i = 0; argc == 4 && i < sizeof tests / sizeof *tests; i++)
		if (strcmp(argv[1], tests[i].name) == 0)
			t = &tests[i];
	if (t == NULL) {
		fprintf(stderr, "usage: measure TEST BYTES ROUNDS\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	bytes = atoi(argv[2]);
	int rounds = atoi(argv[3]);
	size_t room = (size_t)(bytes > 8 ? bytes : 8) * size;
	out = calloc(1, room);
	in = calloc(1, room);
	if (t->places > 0) {
		char *memory;
		MPI_Win_allocate((MPI_Aint)bytes * t->places, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
		if (rank == 0)
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
	}
	if (t->kind != PROCESSOR)
		repeat(t, rounds / 10 + 2);
	MPI_Barrier(MPI_COMM_WORLD);
	double before = processor(), seconds = repeat(t, rounds), used = processor() - before;
	if (t->places > 0) {
		if (rank == 0)
			MPI_Win_unlock(1, win);
		MPI_Win_free(&win); // collective: waits for all ranks
	}
	if (rank == 0) {
		double v = seconds / rounds * 1e6;
		if (t->kind == HALF)
			v /= 2;
		else if (t->kind == RATE)
			v = WINDOW / v;
		else if (t->kind == MBPS)
			v = WINDOW * (double)bytes / v;
		else if (t->kind == PROCESSOR)
			v = used / seconds * 100;
		printf("%.6f\n", v);
	}
	MPI_Finalize();
	return 0;
}
