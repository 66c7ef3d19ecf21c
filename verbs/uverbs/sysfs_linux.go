package uverbs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/verbs"
)

// A system is the place of the kernel's files. Tests have their own.
type system struct {
	class string // the folder /sys/class
	nodes string // the folder /dev/infiniband
}

var kernelSystem = system{class: "/sys/class", nodes: "/dev/infiniband"}

// listDevices returns the names of the devices with a node for verbs, sorted, and the name of the
// node of each.
func (s system) listDevices() (names []string, nodes map[string]string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.class, "infiniband_verbs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	nodes = make(map[string]string)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "uverbs") {
			continue // the file abi_version
		}
		name, err := readText(filepath.Join(s.class, "infiniband_verbs", e.Name(), "ibdev"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, nil, err
		}
		names, nodes[name] = append(names, name), e.Name()
	}
	slices.Sort(names)
	return names, nodes, nil
}

// checkABI returns an error unless the kernel's ABI is the one of this package.
func (s system) checkABI() error {
	version, err := readNumber(filepath.Join(s.class, "infiniband_verbs", "abi_version"))
	if err != nil {
		return err
	}
	if version != abiVersion {
		return fmt.Errorf("%w: ABI version %d of ib_uverbs: want %d; this kernel needs another version of this program", verbs.ErrUnsupported, version, abiVersion)
	}
	return nil
}

// providerABI returns the version of the ABI between a device's driver and its provider.
func (s system) providerABI(node string) (int, error) {
	return readNumber(filepath.Join(s.class, "infiniband_verbs", node, "abi_version"))
}

// A gidRow is an entry of the kernel's GID table.
type gidRow struct {
	gid  verbs.GID
	kind verbs.GIDType
}

// readGID returns an entry of the GID table of a port, or the zero gidRow for an empty one.
func (s system) readGID(device string, port, index int) (gidRow, error) {
	dir := filepath.Join(s.class, "infiniband", device, "ports", strconv.Itoa(port))
	text, err := readText(filepath.Join(dir, "gids", strconv.Itoa(index)))
	if err != nil {
		return gidRow{}, err
	}
	gid, err := verbs.ParseGID(text)
	if err != nil || gid.IsZero() {
		return gidRow{}, err
	}
	row := gidRow{gid: gid}
	// The file of an entry that has been removed meanwhile cannot be read.
	if kind, err := readText(filepath.Join(dir, "gid_attrs", "types", strconv.Itoa(index))); err == nil && kind == verbs.GIDRoCEv2.String() {
		row.kind = verbs.GIDRoCEv2
	}
	return row, nil
}

// maxGIDRank is the rank of the entry that selectGID prefers.
const maxGIDRank = 3

// selectGID returns the index of the entry with an address or, if that is the zero Addr, of the one
// that fits most networks: IPv4 before global IPv6 before the rest.
func (s system) selectGID(device string, entries int, want netip.Addr) (int, error) {
	best, bestRank := 0, -1
	for i := range entries {
		row, err := s.readGID(device, 1, i)
		if err != nil {
			return 0, err
		}
		if row.gid.IsZero() {
			continue
		}
		addr := row.gid.Addr()
		if want.IsValid() && addr == want.Unmap().WithZone("") {
			return i, nil
		}
		rank := 0
		switch {
		case row.kind != verbs.GIDRoCEv2:
		case addr.Is4():
			rank = maxGIDRank
		case addr.IsGlobalUnicast():
			rank = 2
		default:
			rank = 1
		}
		if rank > bestRank {
			best, bestRank = i, rank
		}
		if rank == maxGIDRank && !want.IsValid() {
			break // a table has up to 1024 entries, each with two files
		}
	}
	switch {
	case want.IsValid():
		return 0, fmt.Errorf("%w: no entry of the GID table has the address %v; add it to the network interface of the device", verbs.ErrInvalid, want)
	case bestRank < 0:
		return 0, fmt.Errorf("%w: the GID table is empty; the network interface of the device needs an address and must be up", verbs.ErrInvalid)
	}
	return best, nil
}

// readText returns the content of a file of the kernel without the newline.
func readText(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// readNumber returns the decimal number in a file of the kernel.
func readNumber(path string) (int, error) {
	text, err := readText(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number", path, text)
	}
	return n, nil
}
