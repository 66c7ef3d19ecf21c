package mpirun

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// environment returns a getenv of the variables.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestReadAllocation(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	twice, once := file("twice", "a\na\nb\n"), file("once", "a\nb\n")
	engine := file("pe", "a 2 all.q@a UNDEFINED\nb 1 all.q@b UNDEFINED\n\n")
	empty, broken := file("empty", ""), file("broken", "a two\n")
	for _, c := range []struct {
		env   []string
		name  string // "" for no allocation
		tasks int
		hosts []Host
	}{
		{nil, "", 0, nil},
		{[]string{"SLURM_NTASKS", "4"}, "", 0, nil},
		{[]string{"SLURM_JOB_ID", "1"}, "", 0, nil},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_NTASKS", "4"}, "Slurm job 1", 4, []Host{{"localhost", 4}}},
		{[]string{"SLURM_JOBID", "7", "SLURM_NPROCS", "3", "SLURM_NODELIST", "n[1-2]", "SLURM_TASKS_PER_NODE", "2,1"}, "Slurm job 7", 3, []Host{{"n1", 2}, {"n2", 1}}},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n[1-3,7]", "SLURM_TASKS_PER_NODE", "2(x3),1"}, "Slurm job 1", 7, []Host{{"n1", 2}, {"n2", 2}, {"n3", 2}, {"n7", 1}}},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n1", "SLURM_NTASKS", "2", "SLURM_TASKS_PER_NODE", "4", "SLURM_STEP_NUM_TASKS", "1"}, "Slurm job 1", 2, []Host{{"n1", 4}}},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n[1-3]", "SLURM_NTASKS", "4"}, "Slurm job 1", 4, []Host{{"n1", 2}, {"n2", 1}, {"n3", 1}}},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n[1-2]", "SLURM_NTASKS_PER_NODE", "3"}, "Slurm job 1", 6, []Host{{"n1", 3}, {"n2", 3}}},
		{[]string{"PBS_JOBID", "9.server"}, "", 0, nil},
		{[]string{"PBS_JOBID", "9.server", "PBS_NODEFILE", twice, "PBS_NUM_PPN", "8"}, "PBS job 9.server", 3, []Host{{"a", 2}, {"b", 1}}},
		{[]string{"PBS_JOBID", "9.server", "PBS_NODEFILE", once}, "PBS job 9.server", 2, []Host{{"a", 1}, {"b", 1}}},
		{[]string{"PBS_JOBID", "9.server", "PBS_NODEFILE", once, "PBS_NUM_PPN", "4"}, "PBS job 9.server", 8, []Host{{"a", 4}, {"b", 4}}},
		{[]string{"LSB_JOBID", "3", "LSB_HOSTS", "a a b a"}, "LSF job 3", 4, []Host{{"a", 3}, {"b", 1}}},
		{[]string{"LSB_JOBID", "3", "LSB_HOSTS", "x", "LSB_MCPU_HOSTS", "a 2 b 4"}, "LSF job 3", 6, []Host{{"a", 2}, {"b", 4}}},
		{[]string{"JOB_ID", "5", "PE_HOSTFILE", engine}, "Grid Engine job 5", 3, []Host{{"a", 2}, {"b", 1}}},
	} {
		a, err := ReadAllocation(environment(c.env...))
		require.NoError(t, err, c.env)
		if c.name == "" {
			require.Nil(t, a, c.env)
			continue
		}
		require.NotNil(t, a, c.env)
		require.Equal(t, c.name, a.Name)
		require.Equal(t, c.tasks, a.Tasks, c.env)
		require.Equal(t, c.hosts, a.Hosts, c.env)
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"SLURM_JOB_ID", "1", "SLURM_NTASKS", "x"}, "SLURM_NTASKS=x: want a number"},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_NTASKS", "0"}, "SLURM_NTASKS=0: want a number"},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_NTASKS", "4", "SLURM_STEP_NUM_TASKS", "4"}, "SLURM_STEP_NUM_TASKS=4: srun runs 4 launchers"},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n[1-"}, "SLURM_JOB_NODELIST=n[1-: "},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "-oProxyCommand=x"}, "not a host name"},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n[1-3]", "SLURM_TASKS_PER_NODE", "2(x2)"}, "SLURM_TASKS_PER_NODE=2(x2): numbers of 2 nodes, where SLURM_JOB_NODELIST has 3"},
		{[]string{"SLURM_JOB_ID", "1", "SLURM_JOB_NODELIST", "n1", "SLURM_TASKS_PER_NODE", "2(x"}, `SLURM_TASKS_PER_NODE=2(x: "2(x": want`},
		{[]string{"PBS_JOBID", "9", "PBS_NODEFILE", dir + "/none"}, "PBS_NODEFILE: open "},
		{[]string{"PBS_JOBID", "9", "PBS_NODEFILE", empty}, "no host"},
		{[]string{"PBS_JOBID", "9", "PBS_NODEFILE", once, "PBS_NUM_PPN", "-1"}, "PBS_NUM_PPN=-1"},
		{[]string{"LSB_HOSTS", " "}, "LSB_HOSTS= : no host"},
		{[]string{"LSB_MCPU_HOSTS", "a 2 b"}, "want HOST NUMBER"},
		{[]string{"LSB_MCPU_HOSTS", "a 0"}, "0 ranks on a"},
		{[]string{"PE_HOSTFILE", broken}, `line "a two": want HOST SLOTS`},
		{[]string{"PE_HOSTFILE", dir + "/none"}, "PE_HOSTFILE: open "},
	} {
		_, err := ReadAllocation(environment(c.env...))
		var wrong *OptionError
		require.ErrorAs(t, err, &wrong, c.env)
		require.ErrorContains(t, err, c.want)
	}
}

func TestExpandNodeList(t *testing.T) {
	for text, want := range map[string][]string{
		"n1":                  {"n1"},
		"n[1-3,7]":            {"n1", "n2", "n3", "n7"},
		"n[08-11],login,m[2]": {"n08", "n09", "n10", "n11", "login", "m2"},
		"r[1-2]n[01-02]-ib":   {"r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"},
		"a,b.example.org":     {"a", "b.example.org"},
	} {
		got, err := expandNodeList(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"n[", "n]", "n[1", "n[]", "n[2-1]", "n[a]", "n[1-2-3]", ",", "a,,b", "n[1-99999999]", "n[1-4000]m[1-4000]", "n[1,[2]]", "n[99999999999999999999]"} {
		_, err := expandNodeList(text)
		require.Error(t, err, text)
	}
	counts, err := expandCounts("2(x3),1,4(x2)")
	require.NoError(t, err)
	require.Equal(t, []int{2, 2, 2, 1, 4, 4}, counts)
	for _, text := range []string{"", "x", "2(x)", "2(x0)", "2(3)", "0", "2(x3", "2(x99999999)", "-1"} {
		_, err := expandCounts(text)
		require.Error(t, err, text)
	}
}

// TestExpandNodeListOfAnything checks that a node list with any text in brackets gives an error or
// a bounded list, whose names are lists of one node.
func TestExpandNodeListOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[nm0-9\[\],-]{0,24}`).Draw(t, "list")
		names, err := expandNodeList(text)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(names), maxRanks)
		for _, name := range names {
			require.NotEmpty(t, name)
			require.NotContains(t, name, "[")
			require.NotContains(t, name, ",")
		}
	})
}

// TestRanksOfAnAllocation checks the number of ranks and its bounds for each allocation.
func TestRanksOfAnAllocation(t *testing.T) {
	prog := func(n int) Program { return Program{N: n, Args: []string{"p"}} }
	for _, c := range []struct {
		programs      []Program
		ppn           int
		hosts         []Host // given by the user
		oversubscribe bool
		want          string // the host of each rank, or an error
	}{
		{programs: []Program{prog(0)}, want: "aab"},
		{programs: []Program{prog(2)}, want: "aa"},
		{programs: []Program{prog(1), prog(0)}, want: "aab"},
		{programs: []Program{prog(0)}, ppn: 1, want: "ab"},
		{programs: []Program{prog(3)}, ppn: 1, want: "aba"},
		{programs: []Program{prog(4)}, want: "4 ranks are more than the 3 that Slurm job 1 has allocated; --oversubscribe"},
		{programs: []Program{prog(4)}, oversubscribe: true, want: "aaba"},
		{programs: []Program{prog(0)}, ppn: 2, want: "4 ranks are more than the 3"},
		{programs: []Program{prog(3)}, ppn: 3, want: "3 ranks on a are more than the 2 that Slurm job 1 has allocated there"},
		{programs: []Program{prog(3), prog(0)}, want: "no task of the 3 of Slurm job 1 is left"},
		{programs: []Program{prog(0), prog(0)}, want: "give one of them a number of ranks"},
		{programs: []Program{prog(5)}, hosts: []Host{{"c", 1}}, want: "ccccc"},
		{programs: []Program{prog(0)}, hosts: []Host{{"c", 2}}, want: "cc"},
	} {
		o := Options{Programs: c.programs, PPN: c.ppn, Hosts: c.hosts, Oversubscribe: c.oversubscribe,
			Allocation: &Allocation{Name: "Slurm job 1", Tasks: 3, Hosts: []Host{{"a", 2}, {"b", 1}}}}
		seats, nodes, err := o.placeRanks()
		got := ""
		for _, s := range seats {
			got += nodes[s.node]
		}
		if err != nil {
			got = err.Error()
		}
		require.Contains(t, got, c.want)
	}
}
