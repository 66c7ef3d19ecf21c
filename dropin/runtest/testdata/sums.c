/* Messages and collectives of MPI with checked results, from one integer to 256 KiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	int rank, ranks;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int n = 1; n <= 1 << 16; n *= 16) {
		int *in = malloc(n * sizeof *in), *out = malloc(n * ranks * sizeof *out);
		check(in && out, "malloc");
		for (int i = 0; i < n; i++)
			in[i] = i + rank;
		MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			check(out[i] == ranks * i + ranks * (ranks - 1) / 2, "allreduce");
		MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
		for (int i = 0; i < n * ranks; i++)
			check(out[i] == i % n + i / n, "allgather");
		int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
		MPI_Sendrecv(in, n, MPI_INT, next, 7, out, n, MPI_INT, previous, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < n; i++)
			check(out[i] == i + previous, "sendrecv");
		free(in);
		free(out);
	}
	if (rank == 0)
		printf("%d ranks, all sums right\n", ranks);
	MPI_Finalize();
	return 0;
}
