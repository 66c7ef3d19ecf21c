package mpirun

import (
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// readSlurm reads an allocation of Slurm, within salloc or a batch script. It accepts the variable
// names of older versions too.
func readSlurm(getenv func(string) string) (*Allocation, error) {
	id := cmp.Or(getenv("SLURM_JOB_ID"), getenv("SLURM_JOBID"))
	if id == "" {
		return nil, nil
	}
	if n := getenv("SLURM_STEP_NUM_TASKS"); n != "" && n != "1" {
		return nil, optionErrorf("SLURM_STEP_NUM_TASKS=%s: srun runs %s launchers, each of which would run the whole job; "+
			"run one, without srun, or the program itself by `srun --mpi=pmi2` (--hosts localhost for a job of its own at each)", n, n)
	}
	a := &Allocation{Name: "Slurm job " + id, Here: getenv("SLURMD_NODENAME"), command: srunCommand()}
	tasks := "SLURM_NTASKS"
	if getenv(tasks) == "" {
		tasks = "SLURM_NPROCS"
	}
	var err error
	if a.Tasks, err = readPositive(getenv, tasks); err != nil {
		return nil, err
	}
	list, variable := getenv("SLURM_JOB_NODELIST"), "SLURM_JOB_NODELIST"
	if list == "" {
		list, variable = getenv("SLURM_NODELIST"), "SLURM_NODELIST"
	}
	if list == "" {
		if a.Tasks == 0 {
			return nil, nil // it says nothing of tasks
		}
		a.Hosts = []Host{{"localhost", a.Tasks}}
		return a, nil
	}
	names, err := expandNodeList(list)
	if err != nil {
		return nil, optionErrorf("%s=%s: %v", variable, list, err)
	}
	counts, err := a.slurmCounts(getenv, len(names))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		a.Hosts = addSlots(a.Hosts, name, counts[i])
	}
	return a.checkHosts(variable, list)
}

// slurmCounts returns the number of tasks of each of n nodes.
func (a *Allocation) slurmCounts(getenv func(string) string, n int) ([]int, error) {
	if text := getenv("SLURM_TASKS_PER_NODE"); text != "" {
		counts, err := expandCounts(text)
		if err == nil && len(counts) != n {
			err = fmt.Errorf("numbers of %d nodes, where SLURM_JOB_NODELIST has %d", len(counts), n)
		}
		if err != nil {
			return nil, optionErrorf("SLURM_TASKS_PER_NODE=%s: %v", text, err)
		}
		return counts, nil
	}
	per, err := readPositive(getenv, "SLURM_NTASKS_PER_NODE")
	if err != nil {
		return nil, err
	}
	counts := make([]int, n)
	for i := range counts {
		// Blocks, of which the first are the larger ones.
		counts[i] = max(1, cmp.Or(per, (a.Tasks+n-1-i)/n))
	}
	return counts, nil
}

// expandCounts expands "2(x3),1" to 2, 2, 2 and 1.
func expandCounts(text string) (list []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		number, times, repeated := strings.Cut(word, "(x")
		count := 1
		if repeated {
			if times, repeated = strings.CutSuffix(times, ")"); !repeated {
				return nil, fmt.Errorf("%q: want a number, or one such as 2(x3)", word)
			}
			count, err = strconv.Atoi(times)
		}
		n, err2 := strconv.Atoi(number)
		if err != nil || err2 != nil || n < 1 || count < 1 || count > maxRanks || n > maxRanks || len(list)+count > maxRanks {
			return nil, fmt.Errorf("%q: want a number, or one such as 2(x3)", word)
		}
		list = append(list, slices.Repeat([]int{n}, count)...)
	}
	return list, nil
}

// expandNodeList expands a node list of Slurm: "n[1-3,07],login" is n1, n2, n3, n07 and login.
// Ranges keep leading zeros, and a name may have several brackets.
func expandNodeList(text string) (names []string, err error) {
	for len(text) > 0 {
		word := text
		depth := 0
		for i, c := range text {
			if c == '[' {
				depth++
			} else if c == ']' {
				depth--
			} else if c == ',' && depth == 0 {
				word = text[:i]
				break
			}
		}
		text = strings.TrimPrefix(text[len(word):], ",")
		list, err := expandName(word)
		if err != nil {
			return nil, err
		}
		if names = append(names, list...); len(names) > maxRanks {
			return nil, fmt.Errorf("more than %d nodes", maxRanks)
		}
	}
	return names, nil
}

// expandName expands the ranges in the brackets of one name.
func expandName(word string) ([]string, error) {
	before, rest, ok := strings.Cut(word, "[")
	if !ok {
		if word == "" || strings.Contains(word, "]") {
			return nil, fmt.Errorf("%q is not a node name", word)
		}
		return []string{word}, nil
	}
	inner, rest, ok := strings.Cut(rest, "]")
	if !ok || strings.ContainsAny(before, "]") {
		return nil, fmt.Errorf("%q: unbalanced bracket", word)
	}
	tails := []string{""}
	if rest != "" {
		var err error
		if tails, err = expandName(rest); err != nil {
			return nil, err
		}
	}
	var names []string
	for r := range strings.SplitSeq(inner, ",") {
		low, high, isRange := strings.Cut(r, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 32)
		last, err2 := strconv.ParseUint(high, 10, 32)
		if err != nil || err2 != nil || last < first {
			return nil, fmt.Errorf("%q in %q: want a number or a range such as 1-3", r, word)
		}
		if (last-first+1)*uint64(len(tails))+uint64(len(names)) > maxRanks {
			return nil, fmt.Errorf("%q: more than %d nodes", word, maxRanks)
		}
		for n := first; n <= last; n++ {
			for _, tail := range tails {
				names = append(names, fmt.Sprintf("%s%0*d%s", before, len(low), n, tail))
			}
		}
	}
	return names, nil
}

// srunCommand returns the command that starts an agent by srun, or nil if srun is not installed.
// The agent is a step of one task on the node, in parallel with other steps and with all
// processors of the job there. SLURM_OVERLAP stands for --overlap, which versions before 20.11
// reject.
func srunCommand() func(host string, agent []string) []string {
	if _, err := exec.LookPath("srun"); err != nil {
		return nil
	}
	return func(host string, agent []string) []string {
		return append([]string{"env", "SLURM_OVERLAP=1", "srun", "--nodes=1", "--ntasks=1", "--nodelist=" + host, "--mpi=none", "--cpu-bind=none",
			"--quiet", "--export=ALL"}, agent...)
	}
}
