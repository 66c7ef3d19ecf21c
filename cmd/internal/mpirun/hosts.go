package mpirun

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/hostaddr"
)

// A Host is a machine on which ranks can run.
type Host struct {
	Name  string // as ssh knows it
	Slots int    // ranks in a row
}

// Syntax of hosts, for error texts.
const (
	listForm = "want HOST or HOST:RANKS with commas between, such as node1,node2:4,user@192.0.2.1,[2001:db8::1]:2"
	fileForm = "want HOST, HOST:RANKS or HOST slots=RANKS [max_slots=RANKS] in each line, and # before a comment"
)

// ParseHosts parses a list of hosts separated by commas, each with an optional number of slots:
// node1,node2:4,user@192.0.2.1,[2001:db8::1]:2. An error is an *OptionError that names the entry
// and the syntax.
func ParseHosts(text string) ([]Host, error) {
	var list []Host
	for word := range strings.SplitSeq(text, ",") {
		h, err := parseHost(strings.TrimSpace(word))
		if err != nil {
			return nil, optionErrorf("--hosts %s: entry %d: %v; %s", text, len(list)+1, err, listForm)
		}
		list = append(list, h)
	}
	return list, nil
}

// ReadHosts reads a hosts file with one host a line: "node1", "node1:4" (hydra) or "node1 slots=4"
// (Open MPI); # begins a comment. A syntax error is an *OptionError that names the file, the line
// and the syntax; other errors are those of r.
func ReadHosts(file string, r io.Reader) (list []Host, err error) {
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
			case err != nil:
			case name != "slots" && name != "max_slots" && name != "max-slots":
				err = fmt.Errorf("unexpected %q", word)
			case numberErr != nil || slots < 1 || slots > maxRanks:
				err = fmt.Errorf("%q: want 1 to %d ranks", word, maxRanks)
			case name == "slots":
				h.Slots = slots
			}
		}
		if err != nil {
			return nil, optionErrorf("%s:%d: %v; %s", file, n, err, fileForm)
		}
		list = append(list, h)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(list) == 0 {
		return nil, optionErrorf("%s: no host; %s", file, fileForm)
	}
	return list, nil
}

// parseHost parses [USER@]HOST[:RANKS], where an IPv6 address with ranks is in brackets.
func parseHost(word string) (Host, error) {
	user, rest, isUser := strings.Cut(word, "@")
	if !isUser {
		user, rest = "", word
	} else {
		user += "@"
	}
	if _, err := netip.ParseAddr(rest); err == nil {
		return Host{user + rest, 1}, nil // also ::1, which has colons
	}
	name, slots := rest, ""
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		if name, slots, ok = strings.Cut(inner, "]"); ok && slots != "" {
			slots, ok = strings.CutPrefix(slots, ":")
		}
		if _, err := netip.ParseAddr(name); !ok || err != nil {
			return Host{}, fmt.Errorf("host %q: want an IPv6 address in the brackets", word)
		}
		if strings.HasSuffix(rest, ":") {
			slots = ":"
		}
	} else if i := strings.IndexByte(rest, ':'); i >= 0 {
		name, slots = rest[:i], rest[i+1:]
		if slots == "" {
			slots = ":"
		}
	}
	h := Host{user + name, 1}
	// A name that looks like an option would be one of ssh's.
	if name == "" || user == "@" || strings.HasPrefix(h.Name, "-") || strings.ContainsAny(h.Name, " \t\n'\"\\$`;&|<>()=/") || strings.Contains(name, "@") {
		return Host{}, fmt.Errorf("host %q: not a host name", word)
	}
	if slots != "" {
		n, err := strconv.Atoi(slots)
		if err != nil || n < 1 || n > maxRanks {
			return Host{}, fmt.Errorf("host %q: want a number of ranks from 1 to %d behind the colon", word, maxRanks)
		}
		h.Slots = n
	}
	return h, nil
}

// isLocal reports whether a host is this machine, by its name or by an address of an interface.
func (o *Options) isLocal(name string) bool {
	if name == "localhost" {
		return true
	}
	if len(o.Launch) > 0 {
		return false
	}
	if len(o.Hosts) == 0 && o.Allocation != nil && o.Allocation.Here == name {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.IsLoopback() || hostaddr.IsOwn(ip)
	}
	own, err := os.Hostname()
	return err == nil && sameHost(name, own)
}

// sameHost reports whether name is this host's own name, with or without its domain.
func sameHost(name, own string) bool {
	if strings.EqualFold(name, own) {
		return true
	}
	short, _, full := strings.Cut(name, ".")
	ownShort, _, ownFull := strings.Cut(own, ".")
	if full == ownFull || !strings.EqualFold(short, ownShort) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	ips, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	return slices.ContainsFunc(ips, hostaddr.IsOwn)
}

// lookupTime bounds the resolution of a name that may be this host's.
const lookupTime = 2 * time.Second

// hostPart returns the host of [USER@]HOST.
func hostPart(name string) string { return name[strings.LastIndexByte(name, '@')+1:] }

// isAddress reports whether host is an IP address.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// familyOf returns the IP version of an address, 4 or 6, or 0 if it is none.
func familyOf(text string) int {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return 0
	case ip.Unmap().Is4():
		return 4
	}
	return 6
}
