//! Pairs a deleted file with an added one of the same content: a rename, as people see it.

use std::collections::HashMap;

use super::{JobError, beneath, compare, layer::Place};
use crate::proto::keeper::{LayerChange, LayerChangeKind as Kind, LayerFileType as Type};

/// Files of one size beyond this many are not compared with each other.
const MOST_ALIKE: usize = 32;

pub fn pair(place: &Place, changes: &mut Vec<LayerChange>) -> Result<(), JobError> {
    let mut deleted: HashMap<u64, Vec<usize>> = HashMap::new();
    for (i, change) in changes.iter().enumerate() {
        if let (Kind::Deleted, Some(old)) = (change.kind(), &change.old)
            && old.r#type == i32::from(Type::Regular)
            && old.size > 0
        {
            deleted.entry(old.size).or_default().push(i);
        }
    }
    deleted.retain(|_, alike| alike.len() <= MOST_ALIKE);
    let mut gone = vec![false; changes.len()];
    for i in 0..changes.len() {
        let (Kind::Added, Some(new)) = (changes[i].kind(), &changes[i].new) else { continue };
        if new.r#type != i32::from(Type::Regular) {
            continue;
        }
        let Some(alike) = deleted.get_mut(&new.size) else { continue };
        let mut found = None;
        for (at, &candidate) in alike.iter().enumerate() {
            if same(place, &changes[candidate].path, &changes[i].path)? {
                found = Some(at);
                break;
            }
        }
        if let Some(at) = found {
            let source = alike.swap_remove(at);
            gone[source] = true;
            changes[i].from = changes[source].path.clone();
            changes[i].old = changes[source].old.clone();
            changes[i].conflict |= changes[source].conflict;
            changes[i].kind = Kind::Renamed.into();
        }
    }
    let mut index = 0;
    changes.retain(|_| {
        index += 1;
        !gone[index - 1]
    });
    Ok(())
}

fn same(place: &Place, old: &[u8], new: &[u8]) -> Result<bool, JobError> {
    let (Some((old_parent, old_name)), Some((new_parent, new_name))) = (beneath::split(old), beneath::split(new))
    else {
        return Ok(false);
    };
    if old.len() > beneath::MAX_PATH || new.len() > beneath::MAX_PATH {
        return Ok(false);
    }
    let lower = beneath::open_directory(&place.lower, old_parent)?;
    let upper = beneath::open_directory(&place.upper, new_parent)?;
    compare::same_content((&lower, old_name), (&upper, new_name))
}
