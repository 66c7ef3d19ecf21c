package experiments

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cmd/bench/internal/bench"
	"github.com/softrnic/softrnic/cmd/bench/internal/mpibench"
	"github.com/softrnic/softrnic/mpi"
)

// A contextCache is a model of the cache of queue pair contexts in the adapters of a job: a word
// of the parameter icm.
type contextCache struct {
	word    string
	entries int           // 0: no model
	penalty time.Duration // of a miss; 0: share
	share   float64       // penalty as a fraction of the processor time of a message over UD
}

// Models of the paper, whose section 5.1.2 has the costs: a message over more than 16 connections
// costs 1 us more, which is 0.5 us at each end, and the direct alltoall then takes twice as long as
// over UD, so that 0.5 us was half of the processor time of a message over UD. On 8 ranks the cache
// has the same share of the contexts as on 32.
const (
	icmOff   = "off"
	icmPaper = "16:50%"
	icmSmall = "4:50%"
)

// icmParam returns the parameter that selects the models.
func icmParam(models, quick string) bench.Param {
	return bench.Param{
		Name: "icm", Kind: bench.Words, Default: models, Quick: quick,
		Doc: "models of a cache of connection contexts: off, or entries and the penalty of a miss as a time (16:500ns) or in percent of the processor time of a message over UD (16:50%)",
		Check: func(word string) error {
			_, err := parseContextCache(word)
			return err
		},
	}
}

// maxContexts is the maximum number of entries of a cache, that of rnic.ICM.
const maxContexts = 4096

func parseContextCache(word string) (contextCache, error) {
	c := contextCache{word: word}
	if word == icmOff {
		return c, nil
	}
	entries, penalty, _ := strings.Cut(word, ":")
	n, err := strconv.Atoi(entries)
	if err != nil || n < 1 || n > maxContexts {
		return c, fmt.Errorf("%q is not off or 1 to %d entries and a penalty, such as 16:500ns or 16:50%%", word, maxContexts)
	}
	c.entries = n
	if percent, ok := strings.CutSuffix(penalty, "%"); ok {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(share > 0 && share <= 1000) {
			return c, fmt.Errorf("%q: penalty %q out of range (0%%, 1000%%]", word, penalty)
		}
		c.share = share / 100
		return c, nil
	}
	if c.penalty, err = time.ParseDuration(penalty); err != nil || c.penalty <= 0 || c.penalty > time.Second {
		return c, fmt.Errorf("%q: penalty %q out of range (0, 1s]", word, penalty)
	}
	return c, nil
}

// contextCaches returns the models of the parameter icm.
func (r *run) contextCaches() (list []contextCache) {
	for _, word := range r.Words("icm") {
		c, _ := parseContextCache(word) // checked with the parameters
		list = append(list, c)
	}
	return list
}

// withICM returns the name of a series with the given model.
func withICM(series, word string) string {
	if word == icmOff {
		return series
	}
	return series + "-icm-" + word
}

// environment returns the value of SOFTRNIC_ICM on a number of ranks. Where the penalty is a share,
// it measures a message over UD, and emits the penalty.
func (c contextCache) environment(ctx context.Context, r *run, ranks, size int) (string, error) {
	if c.entries == 0 {
		return icmOff, nil
	}
	penalty := c.penalty
	if c.share > 0 {
		message, err := messageCost(ctx, ranks, size, r.Int("iters"))
		if err != nil {
			return "", err
		}
		penalty = max(1, time.Duration(c.share*float64(message)))
	}
	r.Emit(bench.Row{Series: withICM("penalty", c.word), X: float64(ranks), XUnit: ranksUnit, Y: float64(penalty) / 1e3, YUnit: "us a miss"})
	return fmt.Sprintf("%d,%v", c.entries, penalty), nil
}

// costRounds is the number of rounds that messageCost measures.
const costRounds = 3

// messageCost returns the processor time of a message of the direct alltoall over UD, of both its
// ends: the least of some rounds, in which each rank sends one to every other. It is that of the
// ranks alone, so that other programs on the machine hardly change it.
func messageCost(ctx context.Context, ranks, size, iters int) (time.Duration, error) {
	all, err := openA2A(ctx, ranks, icmOff, []a2aVariant{{a2aDatagrams, mpibench.Alltoall{Algorithm: "ud", Net: mpi.UD}}})
	defer all.close()
	if err != nil {
		return 0, err
	}
	least := time.Duration(math.MaxInt64)
	for range costRounds {
		call, err := all[0].job.CallTimes(ctx, mpibench.Calls{Program: mpibench.Alltoalls, Size: size, Calls: iters})
		if err != nil {
			return 0, err
		}
		least = min(least, call.Processor)
	}
	return least / time.Duration(ranks*(ranks-1)), nil
}

// a2aModel measures variants with a model of the context cache, of which the first is the
// baseline, and Open MPI if there is no model.
func a2aModel(ctx context.Context, r *run, ranks int, c contextCache, variants []a2aVariant, other openMPI) error {
	env, err := c.environment(ctx, r, ranks, slices.Min(r.Ints("sizes")))
	if err != nil {
		return err
	}
	all, err := openA2A(ctx, ranks, env, variants)
	defer all.close()
	if err != nil {
		return err
	}
	for _, size := range r.Ints("sizes") {
		r.Step("%d B on %d ranks, context cache %s", size, ranks, c.word)
		var set seriesSet
		for _, s := range all {
			set.addSeries(withICM(s.series, c.word), s.job.Collective("Alltoall", size, r.Int("iters")))
		}
		if c.word == icmOff {
			other.addTo(&set, ranks, "alltoall", size, r.Int("iters"))
		}
		if _, err := r.measurePoint(ctx, &set, atSize(size, usOnRanks(ranks))); err != nil {
			return err
		}
	}
	return nil
}

// withModel returns a sentence about figures with a model of the context cache.
func withModel(word, sentence string) string {
	if word == icmOff {
		return sentence
	}
	entries, percent, _ := strings.Cut(word, ":")
	return fmt.Sprintf("With a modelled cache of %s contexts and a miss at %s of the processor time of a message over UD: %s", entries, percent, sentence)
}
