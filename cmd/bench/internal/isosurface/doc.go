// Package isosurface renders iso-surfaces of volumes on DataCutter: the surface where
// a field of samples passes a value, as seen from one side. It has four filters:
//
//	read -> extract -> raster -> merge
//
// A [Volume] is a file, or any io.ReaderAt, with one byte for each
// sample. [Generate] generates volumes of any size, sums of round blobs, which are
// the same on every machine.
//
//	volume, err := isosurface.NewVolume(isosurface.SpecFor(16 << 20)) // 256 by 256 by 256
//	picture, report, err := isosurface.Run(ctx, datacutter.NewTCP(""), isosurface.Options{Volume: volume})
//	fmt.Println(report.Elapsed())
//
// Read sends the samples in blocks of as many cells as fill a unit, with the
// samples around them. Extract finds the triangles of the surface in a block by
// marching cubes, with the gradients of the field as normals. Raster projects, shades
// and rasterizes them to pixels with depths. Merge keeps the nearest
// pixel of each position. The volume is divided into slabs, each a work, which
// the instances of the group share, and their frames are merged at the end.
//
// For hosts in several processes, each process creates an [App] with the same [Options]
// and passes [App.Job] to a node:
//
//	app, err := isosurface.New(options)
//	report, err := node.Run(ctx, app.Job(), "node03", addrs)
//	picture, err := app.Picture() // on the host with the merge filters, by default the first
//
// [Reference] renders the same image without filters. All arithmetic is integer
// arithmetic, and the nearest of many pixels does not depend on the order, so the
// two images are bytewise equal for any layout.
package isosurface
