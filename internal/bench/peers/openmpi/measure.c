// What the experiments of MPI do, over any MPI: compiled by mpicc where there
// is one. Rank 0 prints one number.
//
//	measure latency BYTES ROUNDS      half a round trip of ranks 0 and 1, us
//	measure bandwidth BYTES WINDOWS   from rank 0 to 1, 64 sends in a row, MB/s
//	measure rate BYTES WINDOWS        the same in million messages a second
//	measure barrier|allreduce|allgather|alltoall BYTES ROUNDS    us
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64

static int rank, size, bytes;
static char *out, *in;

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

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
static void allreduce(void) { MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void allgather(void) { MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD); }
static void alltoall(void) { MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD); }

static struct {
	const char *name;
	void (*f)(void);
} tests[] = {{"latency", pingpong}, {"bandwidth", window}, {"rate", window}, {"barrier", barrier},
	{"allreduce", allreduce}, {"allgather", allgather}, {"alltoall", alltoall}};

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	void (*f)(void) = NULL;
	for (size_t i = 0; argc == 4 && i < sizeof tests / sizeof *tests; i++)
		if (strcmp(argv[1], tests[i].name) == 0)
			f = tests[i].f;
	if (f == NULL) {
		fprintf(stderr, "usage: measure TEST BYTES ROUNDS\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	bytes = atoi(argv[2]);
	int rounds = atoi(argv[3]);
	size_t room = (size_t)(bytes > 8 ? bytes : 8) * size;
	out = calloc(1, room);
	in = calloc(1, room);
	for (int i = 0; i < rounds / 10 + 2; i++)
		f();
	MPI_Barrier(MPI_COMM_WORLD);
	double t = MPI_Wtime();
	for (int i = 0; i < rounds; i++)
		f();
	t = MPI_Wtime() - t;
	if (rank == 0) {
		double v = t / rounds * 1e6;
		if (f == pingpong)
			v /= 2;
		else if (f == window)
			v = (strcmp(argv[1], "rate") == 0 ? 1 : bytes) * (double)WINDOW * rounds / t / 1e6;
		printf("%.6f\n", v);
	}
	MPI_Finalize();
	return 0;
}
