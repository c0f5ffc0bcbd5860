"""Reports as one HTML file: plots are inline SVG, and nothing is fetched from anywhere."""
