#!/bin/bash
python3 -I "$(dirname "$0")/shorten.py" /app/stops.csv /app/trip.txt
