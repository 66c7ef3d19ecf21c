package mpirun

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Host is where ranks can run.
type Host struct {
	Name  string // as ssh knows it
	Slots int    // ranks in a row
}

// ParseHosts reads a list of hosts with commas, each with its ranks in a row if
// they are not one: node1,node2:4,user@192.0.2.1,[2001:db8::1]:2.
func ParseHosts(text string) ([]Host, error) {
	var list []Host
	for word := range strings.SplitSeq(text, ",") {
		h, err := parseHost(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// ReadHosts reads a file with a host in each line: "node1", "node1:4" as hydra has
// it, or "node1 slots=4" as Open MPI has it. What follows # does not count.
func ReadHosts(r io.Reader) (list []Host, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		h, err := parseHost(words[0])
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch slots, numberErr := strconv.Atoi(value); {
			case name != "slots" && name != "max_slots" && name != "max-slots":
				err = fmt.Errorf("%q is not understood", word)
			case numberErr != nil || slots < 1:
				err = fmt.Errorf("%q is no number of ranks", word)
			case name == "slots":
				h.Slots = slots
			}
		}
		if err != nil {
			return nil, wrong("line %d of the hosts: %v", n, err)
		}
		list = append(list, h)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, wrong("there is no host in the file")
	}
	return list, nil
}

func parseHost(word string) (Host, error) {
	h := Host{Name: word, Slots: 1}
	if _, err := netip.ParseAddr(word); err == nil {
		return h, nil // also ::1, which has colons
	}
	if i := strings.LastIndexByte(word, ':'); i >= 0 {
		slots, err := strconv.Atoi(word[i+1:])
		if err != nil || slots < 1 || slots > maxRanks {
			return h, wrong("host %q: want NAME or NAME:RANKS", word)
		}
		h = Host{word[:i], slots}
	}
	if inner, ok := strings.CutPrefix(h.Name, "["); ok {
		h.Name = strings.TrimSuffix(inner, "]")
	}
	// A name that looks like an option would be one of ssh's.
	if h.Name == "" || strings.HasPrefix(h.Name, "-") || strings.ContainsAny(h.Name, " \t\n'\"\\$`;&|<>()") {
		return h, wrong("%q is no name of a host", word)
	}
	return h, nil
}

// here says whether a host is the one that we run on.
func (o *Options) here(name string) bool {
	if name == "localhost" {
		return true
	}
	if len(o.Launch) > 0 {
		return false
	}
	own, err := os.Hostname()
	if err == nil && name == own {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
