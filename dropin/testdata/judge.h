// Counts calls whose error differs from the one that they should have.
#ifndef JUDGE_H
#define JUDGE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int lines, wrong;

static inline void judge(int line, const char *call, int got, int want)
{
	lines++;
	if (got == want)
		return;
	wrong++;
	printf("line %d: %s: %s, want %s\n", line, call, got ? strerror(got) : "success", want ? strerror(want) : "success");
}

// The result of a function is an errno, a pointer, or -1.
#define INT(want, call) (errno = 0, judge(__LINE__, #call, (call), want))
#define PTR(want, call) (errno = 0, judge(__LINE__, #call, (call) ? 0 : errno, want))
#define NEG(want, call) (errno = 0, judge(__LINE__, #call, (call) < 0 ? errno : 0, want))

#endif
