//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Contents of the guest, as Debian packages and kernel modules.
var (
	kernelPackage = "linux-image-amd64"
	guestPackages = []string{
		"busybox-static", "dash", "ethtool", "ibverbs-providers", "ibverbs-utils", "iproute2", "kmod",
		"perftest", "python3-pyverbs", "rdmacm-utils",
	}
	// rdma_rxe requests crc32 by name at run time, and siw crc32c, so no module depends on them.
	guestModules = []string{
		"virtio_pci", "virtio_net", "crc32_generic", "crc32_pclmul", "crc32c_generic", "libcrc32c", "rdma_rxe", "rdma_ucm", "ib_uverbs", "ib_umad",
		"sch_netem", "sch_prio", "sch_ingress", "cls_u32", "act_mirred", "ifb",
	}
	// Dependencies for installation, boot and documentation, which the guest does not need at run
	// time.
	unusedPackages = regexp.MustCompile(`^(adduser|coreutils|cpio|debconf|dpkg|init-system-helpers|initramfs-.*|klibc-utils|libdb5.*|lib.*-perl|libgdbm.*|libklibc|libperl.*|linux-base|logsave|lsb-base|passwd|pci\.ids|perl.*|sysvinit-utils|tar|udev|usrmerge)$`)
	prunedFolders  = []string{"usr/share", "usr/include", "usr/lib/x86_64-linux-gnu/gconv", "boot", "var"}
	// Kernel folders that contain the modules and their dependencies.
	moduleFolders = []string{"arch/x86/crypto", "crypto", "drivers/infiniband", "drivers/net", "drivers/virtio", "fs/configfs", "lib", "net"}
)

// pythonWarmup imports the modules that the lab's Python programs use, so that the image contains
// them compiled, because the guest is slow.
const pythonWarmup = "import base64, json, os, select, socket, socketserver, struct, sys, threading, time, traceback, zlib, " +
	"pyverbs.addr, pyverbs.cmid, pyverbs.cq, pyverbs.device, pyverbs.enums, pyverbs.mem_alloc, pyverbs.mr, pyverbs.pd, pyverbs.qp, pyverbs.srq, pyverbs.wr"

//go:embed guest/init
var initScript []byte

// An image is a built guest.
type image struct {
	Kernel  string // file name
	Root    string // file name of the root file system, a cpio archive without the agent
	Release string // of the kernel, for example "6.1.0-56-amd64"

	// Versions are the package versions, for example "perftest 4.5+0.17-1".
	Versions []string
}

// buildImage returns the guest image from the cache, or builds it from Debian packages and
// reports that to log.
func buildImage(ctx context.Context, log func(format string, args ...any)) (*image, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache = filepath.Join(cache, "softrnic", "interop")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(cache, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir := filepath.Join(cache, "guest-"+recipeHash())
	if img, err := openImage(dir); err == nil {
		return img, nil
	}
	begin := time.Now()
	log("building the guest of Debian packages, once, into %s", dir)
	work, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	b := builder{ctx: ctx, root: filepath.Join(work, "root"), debs: filepath.Join(work, "debs"), out: filepath.Join(work, "out")}
	if err := b.buildAll(); err != nil {
		return nil, fmt.Errorf("building the guest: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(b.out, dir); err != nil {
		return nil, err
	}
	log("the guest is built (%.0f s)", time.Since(begin).Seconds())
	return openImage(dir)
}

// recipeHash returns a hash of everything that determines the contents of the image.
func recipeHash() string {
	system, _ := os.ReadFile("/etc/os-release")
	sum := sha256.Sum256(fmt.Appendf(nil, "2 %s %s %s %s %s %s %s %s", system, kernelPackage, guestPackages, guestModules,
		unusedPackages, prunedFolders, moduleFolders, pythonWarmup))
	return fmt.Sprintf("%x", sum[:6])
}

func openImage(dir string) (*image, error) {
	versions, err := os.ReadFile(filepath.Join(dir, "versions")) // written last
	if err != nil {
		return nil, err
	}
	release, list, _ := strings.Cut(strings.TrimSpace(string(versions)), "\n")
	return &image{
		Kernel: filepath.Join(dir, "vmlinuz"), Root: filepath.Join(dir, "root.cpio"),
		Release: release, Versions: strings.Split(list, "\n"),
	}, nil
}

// lockFile blocks until it has an exclusive lock on the file.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// A builder builds an image: it unpacks packages to a root folder and archives that.
type builder struct {
	ctx             context.Context
	root, debs, out string // folders
	release         string
}

func (b *builder) buildAll() error {
	for _, dir := range []string{b.root, filepath.Join(b.debs, "partial"), b.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// Packages that still use /lib get /usr/lib.
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(b.root, "usr", name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("usr", name), filepath.Join(b.root, name)); err != nil {
			return err
		}
	}
	for _, step := range []func() error{b.downloadPackages, b.unpackPackages, b.pruneModules, b.compilePython, b.pruneFiles, b.packRoot} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// downloadPackages downloads the packages with all dependencies, regardless of those installed,
// and the kernel without dependencies.
func (b *builder) downloadPackages() error {
	kernel, err := b.kernelName()
	if err != nil {
		if _, err = b.runIn(b.debs, "apt-get", "update", "-qq"); err != nil {
			return err
		}
		if kernel, err = b.kernelName(); err != nil {
			return err
		}
	}
	b.release = strings.TrimPrefix(kernel, "linux-image-")
	options := []string{"-qq", "-o", "APT::Sandbox::User=root", "-o", "Dir::Cache::Archives=" + b.debs, "-o", "Debug::NoLocking=1"}
	if _, err := b.runIn(b.debs, "apt-get", append(options, "download", kernel)...); err != nil {
		return err
	}
	options = append(options, "-o", "Dir::State::Status=/dev/null", "--no-install-recommends", "-y", "--download-only", "install")
	_, err = b.runIn(b.debs, "apt-get", append(options, guestPackages...)...)
	return err
}

// kernelName returns the kernel package that the meta package kernelPackage depends on.
func (b *builder) kernelName() (string, error) {
	out, err := b.runIn(b.debs, "apt-cache", "depends", kernelPackage)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if _, name, ok := strings.Cut(line, "Depends: "); ok && strings.HasPrefix(name, "linux-image-") {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("apt does not know which kernel %s is", kernelPackage)
}

func (b *builder) unpackPackages() error {
	files, err := filepath.Glob(filepath.Join(b.debs, "*.deb"))
	if err != nil {
		return err
	}
	versions := []string{b.release}
	for _, file := range files {
		name, rest, _ := strings.Cut(filepath.Base(file), "_")
		version, _, _ := strings.Cut(rest, "_")
		if slices.Contains(guestPackages, name) || strings.HasPrefix(name, "linux-image-") {
			versions = append(versions, name+" "+strings.ReplaceAll(version, "%3a", ":"))
		}
		switch {
		case strings.HasPrefix(name, "linux-image-"):
			err = b.unpackKernel(file)
		case !unusedPackages.MatchString(name):
			err = b.unpackFile(file)
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(b.out, "versions"), []byte(strings.Join(versions, "\n")+"\n"), 0o644)
}

// unpackKernel unpacks the kernel and the required module folders, about a tenth of all.
func (b *builder) unpackKernel(file string) error {
	modules := "*/lib/modules/" + b.release + "/"
	paths := []string{"*/boot/vmlinuz-" + b.release, modules + "modules.order", modules + "modules.builtin"}
	for _, folder := range moduleFolders {
		paths = append(paths, modules+"kernel/"+folder+"/*")
	}
	return b.unpackFile(file, paths...)
}

// unpackFile unpacks a package, or the files that match the patterns.
func (b *builder) unpackFile(file string, patterns ...string) error {
	script := `f=$1; shift; dpkg-deb --fsys-tarfile "$f" | tar -x --keep-directory-symlink --wildcards "$@"`
	_, err := b.runIn(b.root, "sh", append([]string{"-c", script, "sh", file}, patterns...)...)
	return err
}

// pruneModules removes all modules but those that the guest loads and their dependencies.
func (b *builder) pruneModules() error {
	if err := os.Rename(filepath.Join(b.root, "boot", "vmlinuz-"+b.release), filepath.Join(b.out, "vmlinuz")); err != nil {
		return err
	}
	if _, err := b.inRoot("/sbin/depmod", b.release); err != nil {
		return err
	}
	keep := make(map[string]bool)
	for _, m := range guestModules {
		out, err := b.inRoot("/sbin/modprobe", "-S", b.release, "--show-depends", m)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if path, ok := strings.CutPrefix(line, "insmod "); ok {
				keep[strings.TrimSpace(path)] = true
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(b.root, "lib", "modules"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), ".ko") && !keep[strings.TrimPrefix(path, b.root)] {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = b.inRoot("/sbin/depmod", b.release)
	return err
}

// compilePython makes Python compile the modules that are used.
func (b *builder) compilePython() error {
	_, err := b.inRoot("/usr/bin/python3", "-c", pythonWarmup)
	return err
}

func (b *builder) pruneFiles() error {
	for _, path := range prunedFolders {
		if err := os.RemoveAll(filepath.Join(b.root, path)); err != nil {
			return err
		}
	}
	for _, path := range []string{"dev", "proc", "sys", "tmp", "run", "root", "lab/busybox"} {
		if err := os.MkdirAll(filepath.Join(b.root, path), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// packRoot writes the cpio archive of the root folder.
func (b *builder) packRoot() error {
	f, err := os.Create(filepath.Join(b.out, "root.cpio"))
	if err != nil {
		return err
	}
	err = archiveFolder(f, b.root)
	return errors.Join(err, f.Close())
}

// inRoot runs a program in the root folder by chroot(8).
func (b *builder) inRoot(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(b.ctx, "chroot", append([]string{b.root, name}, args...)...)
	cmd.SysProcAttr = asRoot(&syscall.SysProcAttr{})
	return runOutput(cmd)
}

// runIn runs a command in a folder and returns its stdout.
func (b *builder) runIn(dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(b.ctx, name, args...)
	cmd.Dir = dir
	return runOutput(cmd)
}

func runOutput(cmd *exec.Cmd) (string, error) {
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}
