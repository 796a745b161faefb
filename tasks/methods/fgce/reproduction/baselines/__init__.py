"""FGCE beside the systems that its paper compares it with (section V-B): FACE, AReS and GLOBE-CE."""
