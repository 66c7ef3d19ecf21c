package main

// #include <string.h>
import "C"

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// Programs look beside libibverbs at /sys/class/infiniband (UCX, pyverbs) and at
// /dev/infiniband. The preloaded library redirects these paths to a directory of this process,
// which is made when they are asked for first.
var paths struct {
	once sync.Once
	root string
	lock *os.File // the open directory
}

const pathsPrefix = "softrnic-sys-"

// pathsParents returns the directories for directories of processes, the first that can be written to for this one. In
// a container whose root file system is read-only /dev/shm is not.
func pathsParents() []string { return []string{os.TempDir(), "/dev/shm"} }

//export go_paths_root
func go_paths_root(root *C.char, size C.size_t) {
	defer reportPanic()
	paths.once.Do(func() {
		dir, lock, err := makePaths()
		if err != nil {
			fmt.Fprintf(os.Stderr, "softrnic: describe devices: %v\n", err)
			return
		}
		paths.lock = lock
		for i, d := range devices {
			if err := d.writePaths(dir, i); err != nil {
				fmt.Fprintf(os.Stderr, "softrnic: %s: describe device: %v\n", dir, err)
			}
		}
		paths.root = dir
	})
	out := unsafe.Slice((*byte)(unsafe.Pointer(root)), int(size))
	if len(paths.root) < len(out) {
		copy(out, paths.root+"\x00")
	}
}

// makePaths makes the directory of this process. It is locked before it has its name, so that others do not remove it,
// and until the process and its children by fork end.
func makePaths() (dir string, lock *os.File, err error) {
	var errs []error
	for _, parent := range pathsParents() {
		if dir, lock, err = makePathsIn(parent); err == nil {
			return dir, lock, nil
		}
		errs = append(errs, err)
	}
	return "", nil, errors.Join(errs...)
}

func makePathsIn(parent string) (string, *os.File, error) {
	dir, err := os.MkdirTemp(parent, "softrnic-new-")
	if err != nil {
		return "", nil, err
	}
	lock, err := lockDir(dir)
	if err == nil {
		name := filepath.Join(parent, pathsPrefix+strconv.Itoa(os.Getpid())+"-"+filepath.Base(dir)[len("softrnic-new-"):])
		if err = os.Rename(dir, name); err == nil {
			return name, lock, nil
		}
		lock.Close()
	}
	os.Remove(dir) //nolint:errcheck // the first error tells
	return "", nil, err
}

// lockDir opens and locks a directory, or fails with EWOULDBLOCK if a process has it locked.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	return f, nil
}

// writePaths describes a device as the kernel does in /sys/class.
func (d *device) writePaths(dir string, index int) error {
	name := "softrnic" + strconv.Itoa(index)
	attr := d.QueryDevice()
	files := map[string]string{
		"node_type": "1: CA", "node_guid": guidText(attr.NodeGUID), "sys_image_guid": guidText(attr.SysImageGUID),
		"fw_ver": attr.FWVer, "hca_type": "softrnic", "board_id": "softrnic", "hw_rev": strconv.Itoa(int(attr.HWVer)), "node_desc": name,
		"ports/1/link_layer": "Ethernet", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
		"ports/1/rate": "10 Gb/sec (4X SDR)", "ports/1/pkeys/0": "0xffff", "ports/1/lid": "0x0", "ports/1/sm_lid": "0x0",
		"ports/1/cap_mask": "0x00010000",
	}
	if e, err := d.QueryGID(1, 0); err == nil {
		files["ports/1/gids/0"] = gidText(e.GID)
		files["ports/1/gid_attrs/types/0"] = "RoCE v2"
	}
	if i, err := net.InterfaceByIndex(d.interfaceIndex); err == nil {
		files["ports/1/gid_attrs/ndevs/0"] = i.Name
		files["device/net/"+i.Name+"/ifindex"] = strconv.Itoa(i.Index)
	}
	all := map[string]string{}
	for file, text := range files {
		all["infiniband/"+name+"/"+file] = text
	}
	uverbs := "infiniband_verbs/uverbs" + strconv.Itoa(index)
	all[uverbs+"/ibdev"], all[uverbs+"/abi_version"], all["infiniband_verbs/abi_version"] = name, "1", "6"
	for file, text := range all {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func guidText(guid uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", guid>>48, guid>>32&0xffff, guid>>16&0xffff, guid&0xffff)
}

func gidText(g verbs.GID) string {
	var words []string
	for i := 0; i < len(g); i += 2 {
		words = append(words, fmt.Sprintf("%02x%02x", g[i], g[i+1]))
	}
	return strings.Join(words, ":")
}

// removePaths removes the directory of this process.
func removePaths() {
	if paths.root != "" {
		os.RemoveAll(paths.root) //nolint:errcheck // the next process tries again
	}
}

// removeStalePaths removes the directories of processes of this user that were killed. A process of another PID
// namespace may have one here, so its lock tells.
func removeStalePaths() {
	var dirs []string
	for _, parent := range pathsParents() {
		found, _ := filepath.Glob(filepath.Join(parent, pathsPrefix+"*"))
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if lock, err := lockDir(dir); err == nil {
			os.RemoveAll(dir) //nolint:errcheck // the next process tries again
			lock.Close()
		}
	}
}
