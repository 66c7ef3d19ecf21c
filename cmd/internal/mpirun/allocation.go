package mpirun

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// An Allocation is the set of hosts that a batch system has allocated to the job in which the
// launcher runs.
type Allocation struct {
	Name  string // "Slurm job 4711"
	Hosts []Host // with a slot for each task
	Tasks int    // ranks unless the user gives a number; not below 1
	Here  string // the batch system's name of this host, or empty

	command func(host string, agent []string) []string // starts an agent there; nil is ssh
}

// ReadAllocation returns the allocation that the environment describes, in the variables
// of Slurm, PBS, LSF or Grid Engine, or nil without any. An error is an
// *OptionError that names the variable.
func ReadAllocation(getenv func(string) string) (*Allocation, error) {
	for _, read := range []func(func(string) string) (*Allocation, error){readSlurm, readPBS, readLSF, readGridEngine} {
		if a, err := read(getenv); a != nil || err != nil {
			return a, err
		}
	}
	return nil, nil
}

// slotCount returns the number of slots of all hosts.
func (a *Allocation) slotCount() (n int) {
	for _, h := range a.Hosts {
		n += h.Slots
	}
	return n
}

// fillRankCounts gives the program without a number of ranks the tasks of the allocation that
// remain. With ppn > 0 that program gets ppn ranks on each host.
func (a *Allocation) fillRankCounts(programs []Program, ppn int) ([]Program, error) {
	tasks := a.Tasks
	if ppn > 0 {
		tasks = ppn * len(a.Hosts)
	}
	open := -1
	for i, p := range programs {
		switch {
		case p.N > 0:
			tasks -= p.N
		case open >= 0:
			return nil, optionErrorf("%s and %s: give one of them a number of ranks (-n) to share the %d tasks of %s",
				programs[open].Args[0], p.Args[0], a.Tasks, a.Name)
		default:
			open = i
		}
	}
	if open < 0 {
		return programs, nil
	}
	if tasks < 1 {
		return nil, optionErrorf("%s: no task of the %d of %s is left; give it a number of ranks (-n) and --oversubscribe", programs[open].Args[0], a.Tasks, a.Name)
	}
	programs = slices.Clone(programs)
	programs[open].N = tasks
	return programs, nil
}

// checkCapacity returns an error if there are more ranks than slots, in total or on one host.
func (a *Allocation) checkCapacity(seats []placement, nodes []string) error {
	if room := max(a.slotCount(), a.Tasks); len(seats) > room {
		return optionErrorf("%d ranks are more than the %d that %s has allocated; --oversubscribe runs them all the same", len(seats), room, a.Name)
	}
	used, room := make([]int, len(nodes)), map[string]int{}
	for _, s := range seats {
		used[s.node]++
	}
	for _, h := range a.Hosts {
		room[h.Name] += h.Slots
	}
	for i, name := range nodes {
		if used[i] > room[name] && len(seats) <= a.slotCount() {
			return optionErrorf("%d ranks on %s are more than the %d that %s has allocated there; --oversubscribe runs them all the same", used[i], name, room[name], a.Name)
		}
	}
	return nil
}

// addSlots adds slots of a host to a list in which each host occurs once.
func addSlots(list []Host, name string, slots int) []Host {
	if i := slices.IndexFunc(list, func(h Host) bool { return h.Name == name }); i >= 0 {
		list[i].Slots += slots
		return list
	}
	return append(list, Host{name, slots})
}

// checkHosts validates the hosts of an allocation, read from a variable with this text.
func (a *Allocation) checkHosts(variable, text string) (*Allocation, error) {
	for _, h := range a.Hosts {
		if checked, err := parseHost(h.Name); err != nil || checked.Name != h.Name {
			return nil, optionErrorf("%s=%s: %q is not a host name", variable, text, h.Name)
		}
		if h.Slots < 1 || h.Slots > maxRanks {
			return nil, optionErrorf("%s=%s: %d ranks on %s: want 1 to %d", variable, text, h.Slots, h.Name, maxRanks)
		}
	}
	if len(a.Hosts) == 0 {
		return nil, optionErrorf("%s=%s: no host", variable, text)
	}
	if a.Tasks == 0 {
		a.Tasks = a.slotCount()
	}
	return a, nil
}

// readPositive returns the value of a variable that must be at least 1, or 0 if it is empty.
func readPositive(getenv func(string) string, name string) (int, error) {
	text := getenv(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRanks {
		return 0, optionErrorf("%s=%s: want a number from 1 to %d", name, text, maxRanks)
	}
	return n, nil
}

// startCommand returns the command by which a batch system starts another on a host, or nil if it
// is not installed.
func startCommand(words ...string) func(host string, agent []string) []string {
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil
	}
	return func(host string, agent []string) []string {
		return append(append(slices.Clone(words), host), agent...)
	}
}

// readPBS reads an allocation of PBS or Torque: a file with a line for each slot.
func readPBS(getenv func(string) string) (*Allocation, error) {
	id, file := getenv("PBS_JOBID"), getenv("PBS_NODEFILE")
	if id == "" || file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, optionErrorf("PBS_NODEFILE: %v", err)
	}
	a := &Allocation{Name: "PBS job " + id}
	single := true // no host twice
	for name := range strings.FieldsSeq(string(b)) {
		a.Hosts = addSlots(a.Hosts, name, 1)
		single = single && a.Hosts[len(a.Hosts)-1].Name == name && a.Hosts[len(a.Hosts)-1].Slots == 1
	}
	ppn, err := readPositive(getenv, "PBS_NUM_PPN")
	if err != nil {
		return nil, err
	}
	if single && ppn > 0 { // of a file with each host once
		for i := range a.Hosts {
			a.Hosts[i].Slots = ppn
		}
	}
	return a.checkHosts("PBS_NODEFILE", file)
}

// readLSF reads an allocation of LSF: hosts with numbers, or a host for each slot.
func readLSF(getenv func(string) string) (*Allocation, error) {
	id := getenv("LSB_JOBID")
	a := &Allocation{Name: "LSF job " + id, command: startCommand("blaunch")}
	if text := getenv("LSB_MCPU_HOSTS"); text != "" {
		words := strings.Fields(text)
		for i := 0; i < len(words); i += 2 {
			if i+1 == len(words) {
				return nil, optionErrorf("LSB_MCPU_HOSTS=%s: want HOST NUMBER HOST NUMBER ...", text)
			}
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				return nil, optionErrorf("LSB_MCPU_HOSTS=%s: %q is not a number of slots", text, words[i+1])
			}
			a.Hosts = addSlots(a.Hosts, words[i], n)
		}
		return a.checkHosts("LSB_MCPU_HOSTS", text)
	}
	text := getenv("LSB_HOSTS")
	if text == "" {
		return nil, nil
	}
	for name := range strings.FieldsSeq(text) {
		a.Hosts = addSlots(a.Hosts, name, 1)
	}
	return a.checkHosts("LSB_HOSTS", text)
}

// readGridEngine reads an allocation of Grid Engine: a file with lines of a host, its
// slots, a queue and processors.
func readGridEngine(getenv func(string) string) (*Allocation, error) {
	file := getenv("PE_HOSTFILE")
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, optionErrorf("PE_HOSTFILE: %v", err)
	}
	a := &Allocation{Name: "Grid Engine job " + getenv("JOB_ID"), command: startCommand("qrsh", "-inherit", "-V")}
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		n := 0
		if len(words) > 1 {
			n, err = strconv.Atoi(words[1])
		}
		if n < 1 || err != nil {
			return nil, optionErrorf("PE_HOSTFILE=%s: line %q: want HOST SLOTS ...", file, strings.TrimSpace(line))
		}
		a.Hosts = addSlots(a.Hosts, words[0], n)
	}
	return a.checkHosts("PE_HOSTFILE", file)
}
