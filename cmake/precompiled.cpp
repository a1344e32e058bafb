// A target has precompiled headers only if a source uses them.
