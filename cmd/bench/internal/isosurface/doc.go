// Package isosurface renders surfaces in volumes on DataCutter: where a field
// of samples passes a value, as seen from one side. Four filters do it:
//
//	read -> extract -> raster -> merge
//
// A [Volume] is a file, or anything that can be read at an offset: a byte a
// sample. [Generate] makes volumes of any size, sums of round blobs, the same
// ones on every machine.
//
//	volume, err := isosurface.NewVolume(isosurface.SpecFor(16 << 20)) // 256 by 256 by 256
//	picture, report, err := isosurface.Run(ctx, datacutter.TCP{}, isosurface.Options{Volume: volume})
//	fmt.Println(report.Elapsed())
//
// Read sends the samples in blocks of as many cells as fill a unit, with the
// samples around them. Extract finds the triangles of the surface in a block by
// marching cubes, with the slopes of the field as normals. Raster turns them to
// the picture, shades them and makes pixels with depths. Merge keeps the nearest
// pixel of each place. The volume is cut into slabs, each a work, which
// the instances of the group share, and what they see is merged in the end.
//
// For hosts in several processes each makes an [App] with the same [Options]
// and gives [App.Job] to a node:
//
//	app, err := isosurface.New(options)
//	report, err := node.Run(ctx, app.Job(), "node03", addrs)
//	picture, err := app.Picture() // on the host with the merges, by default the first
//
// [Reference] makes the same picture without any of that. All of it is integer
// arithmetic, and the nearest of many pixels is the same in any order, so the
// two are equal to the byte, on any layout.
package isosurface
