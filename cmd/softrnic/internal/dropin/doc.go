// Package dropin prepares unmodified C programs that use libibverbs and librdmacm to run on
// softrnic: it finds or builds the libraries of dropin/, checks a program before it is started, and
// makes its environment.
//
//	libs, err := dropin.NewFinder(os.Stderr).Find(ctx)
//	path, err := exec.LookPath("ib_write_bw")
//	err = libs.Check(path)
//	environ := libs.Environ(os.Environ(), path, dropin.Settings{Devices: 2})
//	err = dropin.Exec(path, []string{"ib_write_bw"}, environ)
//
// The package needs no cgo. Only Linux has such programs; elsewhere Find returns
// errors.ErrUnsupported.
package dropin
